//! The probe as it was built with this crate, and its way into a process: a sealed memfd.

use std::fs::{self, File};
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
        memory_file::sealed(c"fencepost-probe", Use::Program, image).map_err(os("put the probe into a sealed memfd"))
    }
}
