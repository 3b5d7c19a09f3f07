//! Keeps what the recorded program prints out of a document: its standard output goes to standard error meanwhile.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Until it is dropped, standard output is standard error, also for programs that are started.
#[derive(Debug)]
pub struct Aside {
    /// The real standard output; not inherited by programs.
    output: OwnedFd,
}

impl Aside {
    /// Fails if one of the two is closed.
    pub fn begin() -> io::Result<Aside> {
        io::stdout().flush()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        replace_output(libc::STDERR_FILENO)?;
        Ok(Aside { output })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // Neither can fail in a way that somebody could be told of: the descriptor is open, and ours.
        let _ = io::stdout().flush();
        let _ = replace_output(self.output.as_raw_fd());
    }
}

fn replace_output(by: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is involved, and nobody in this process owns descriptor 1: the standard library only borrows it.
    if unsafe { libc::dup2(by, libc::STDOUT_FILENO) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
