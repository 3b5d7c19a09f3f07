//! While a program with operations is recorded: they are on standard input, and what it answers goes to a file.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use supervise::memory_file;

/// Until it is ended, standard input and output are files, also for programs that are started.
#[derive(Debug)]
pub struct Served {
    /// The real ones; not inherited by programs.
    kept: Vec<(libc::c_int, OwnedFd)>,
    answers: File,
}

impl Served {
    pub fn begin(operations: &[u8]) -> io::Result<Served> {
        io::stdout().flush()?;
        let input = memory_file::holding(c"operations", operations)?;
        let mut served = Served { kept: Vec::new(), answers: memory_file::create(c"answers")? };
        served.replace(libc::STDIN_FILENO, input.as_raw_fd())?;
        served.replace(libc::STDOUT_FILENO, served.answers.as_raw_fd())?;
        Ok(served)
    }

    fn replace(&mut self, number: libc::c_int, by: libc::c_int) -> io::Result<()> {
        // SAFETY: plain calls on descriptors; the copy is new and ours.
        let kept = unsafe {
            let kept = libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3);
            if kept < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(kept)
        };
        // SAFETY: nobody in this process owns these descriptors: the standard library only borrows them.
        if unsafe { libc::dup2(by, number) } < 0 {
            return Err(io::Error::last_os_error());
        }
        self.kept.push((number, kept));
        Ok(())
    }

    /// Puts things back; what the program wrote.
    pub fn end(mut self) -> io::Result<Vec<u8>> {
        let mut answers = Vec::new();
        self.answers.rewind()?;
        self.answers.read_to_end(&mut answers)?;
        Ok(answers)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        for (number, kept) in &self.kept {
            // SAFETY: as above. It cannot fail: both are open.
            unsafe { libc::dup2(kept.as_raw_fd(), *number) };
        }
    }
}
