//! Anonymous files that are passed to the target's process by descriptor.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::error::{LaunchError, os};

/// What a memfd is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Program,
    Data,
}

pub(super) fn create(name: &CStr, purpose: Use) -> Result<OwnedFd, LaunchError> {
    let executable = if purpose == Use::Program { libc::MFD_EXEC } else { libc::MFD_NOEXEC_SEAL };
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Kernels before 6.3 do not know the two flags about execution and refuse them.
    for flags in [flags | executable, flags] {
        // SAFETY: `name` is a C string; the call returns a new descriptor or -1.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        if fd >= 0 {
            // SAFETY: the descriptor is new and nobody else owns it.
            return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            break;
        }
    }
    Err(os("create a memfd")(io::Error::last_os_error()))
}

/// Forbids every later change of content and length.
pub(super) fn seal(fd: &OwnedFd) -> Result<(), LaunchError> {
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: plain fcntl on a descriptor that we own.
    if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(os("seal the probe's memfd")(io::Error::last_os_error()));
    }
    Ok(())
}
