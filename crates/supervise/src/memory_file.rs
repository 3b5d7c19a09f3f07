//! Files in memory without a name: what is passed to a process by descriptor, and input and output that a full disk must not cut.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd};

/// What a file in memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Program,
    Data,
}

/// An empty one, to be read and written.
pub fn create(name: &CStr) -> io::Result<File> {
    create_for(name, Use::Data)
}

/// One with this content, to be read from its beginning.
pub fn holding(name: &CStr, bytes: &[u8]) -> io::Result<File> {
    let mut file = create(name)?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

pub(crate) fn create_for(name: &CStr, purpose: Use) -> io::Result<File> {
    let executable = if purpose == Use::Program { libc::MFD_EXEC } else { libc::MFD_NOEXEC_SEAL };
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Kernels before 6.3 do not know the two flags about execution and refuse them.
    for flags in [flags | executable, flags] {
        // SAFETY: `name` is a C string; the call returns a new descriptor or -1.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        if fd >= 0 {
            // SAFETY: the descriptor is new and nobody else owns it.
            return Ok(unsafe { File::from_raw_fd(fd) });
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            break;
        }
    }
    Err(io::Error::last_os_error())
}

/// How often a file is made anew whose pages the kernel holds.
const SEALING_TRIES: usize = 20;

/// One with this content that nobody can change any more.
///
/// The kernel refuses the seal (`EBUSY`) while it holds a page of the file for purposes of its own, such as moving it to another place in memory. It
/// waits for a while by itself; on a busy machine that is not always enough. A new file has other pages.
pub(crate) fn sealed(name: &CStr, purpose: Use, bytes: &[u8]) -> io::Result<File> {
    retry_while_busy(|| {
        let mut file = create_for(name, purpose)?;
        file.write_all(bytes)?;
        seal(&file)?;
        Ok(file)
    })
}

fn retry_while_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..SEALING_TRIES {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            done => return done,
        }
    }
    attempt()
}

/// Forbids every later change of content and length.
fn seal(file: &File) -> io::Result<()> {
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: plain fcntl on a descriptor that we own.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
