//! The probe as it was built with this crate, and its way into a process: a sealed memfd.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use super::error::{LaunchError, os};
use crate::memory_file::{self, Use};

static PROBE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probe.elf"));

/// Whether this build contains the probe (`FENCEPOST_NO_PROBE` leaves it out).
pub fn is_embedded() -> bool {
    !PROBE.is_empty()
}

/// Which probe to run targets under.
#[derive(Clone, Debug, Default)]
pub enum ProbeImage {
    /// The one that was built with this crate.
    #[default]
    Embedded,
    /// An executable that speaks the same wire protocol.
    File(PathBuf),
}

impl ProbeImage {
    /// A memfd with the probe in it that nobody can change any more.
    pub(super) fn open(&self) -> Result<File, LaunchError> {
        let read;
        let image = match self {
            ProbeImage::Embedded if !is_embedded() => return Err(LaunchError::NoProbe),
            ProbeImage::Embedded => PROBE,
            ProbeImage::File(path) => {
                read = fs::read(path).map_err(os("read the probe"))?;
                &read
            }
        };
        let mut file = memory_file::create_for(c"fencepost-probe", Use::Program).map_err(os("create a memfd"))?;
        file.write_all(image).map_err(os("write the probe into a memfd"))?;
        memory_file::seal(&file).map_err(os("seal the probe's memfd"))?;
        Ok(file)
    }
}
