//! Files in memory without a name: input and output of programs, which a full disk must not cut.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::FromRawFd;

pub fn create(name: &CStr) -> io::Result<File> {
    // SAFETY: a C string; the descriptor is new.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: nobody else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// One with this content, to be read from its beginning.
pub fn holding(name: &CStr, bytes: &[u8]) -> io::Result<File> {
    let mut file = create(name)?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
