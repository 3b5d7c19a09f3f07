//! Operations on standard input.

use std::io;

use crate::error::{DriveError, system};

/// Longest piece that is read at once.
const PIECE: usize = 64 << 10;

/// Lines of standard input.
#[derive(Debug)]
pub struct Input {
    pending: Vec<u8>,
}

impl Input {
    /// Nothing is read yet; but where the engine serves operations, reading nothing tells it that all before this is the
    /// same for every run.
    pub fn begin() -> Result<Input, DriveError> {
        read(&mut []).map_err(system("read operations"))?;
        Ok(Input { pending: Vec::new() })
    }

    /// The next operation, without the end of its line.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, DriveError> {
        loop {
            if let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
                let rest = self.pending.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.pending, rest);
                line.pop();
                return Ok(Some(line));
            }
            let mut piece = vec![0; PIECE];
            let len = read(&mut piece).map_err(system("read operations"))?;
            if len == 0 {
                let last = std::mem::take(&mut self.pending);
                return Ok((!last.is_empty()).then_some(last));
            }
            self.pending.extend_from_slice(&piece[..len]);
        }
    }
}

/// Not through the standard library: it would drop a read of nothing.
fn read(buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the buffer is ours and as long as we say.
        let len = unsafe { libc::read(libc::STDIN_FILENO, buffer.as_mut_ptr().cast(), buffer.len()) };
        match usize::try_from(len) {
            Ok(len) => return Ok(len),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
