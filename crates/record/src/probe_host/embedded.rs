//! The probe as it was built with this crate, and its way into a process: a sealed memfd.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use super::error::{LaunchError, os};
use super::memfd;

static PROBE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probe.elf"));

/// Whether this build contains the probe (`FENCEPOST_NO_PROBE` leaves it out).
pub fn is_embedded() -> bool {
    !PROBE.is_empty()
}

/// A memfd with the probe in it that nobody can change any more.
pub(super) fn open() -> Result<OwnedFd, LaunchError> {
    if !is_embedded() {
        return Err(LaunchError::NoProbe);
    }
    let mut file = File::from(memfd::create(c"fencepost-probe", memfd::Use::Program)?);
    file.write_all(PROBE).map_err(os("write the probe into a memfd"))?;
    let fd = OwnedFd::from(file);
    memfd::seal(&fd)?;
    Ok(fd)
}
