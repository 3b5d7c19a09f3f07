//! Standard input, output and error of a run.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsRawFd;

use super::error::{NativeError, system};
use crate::command::Input;
use supervise::limits::{Limits, OUTPUT_ENDS_RUN};
use supervise::memory_file;

/// Output goes to files in memory: a recovery never waits for a reader, and nobody must read while it runs.
#[derive(Debug)]
pub(super) struct Streams {
    input: File,
    stdout: File,
    stderr: File,
}

impl Streams {
    pub fn open(input: &Input) -> Result<Streams, NativeError> {
        let input = match input {
            Input::Empty => File::open("/dev/null").map_err(system("open /dev/null"))?,
            Input::Operations(operations) => {
                memory_file::holding(c"operations", &operations.bytes()).map_err(system("create a file in memory"))?
            }
            Input::Bytes(bytes) => memory_file::holding(c"input", bytes).map_err(system("create a file in memory"))?,
            Input::File(path) => {
                File::open(path).map_err(|source| NativeError::Input { path: path.clone(), source })?
            }
        };
        let output = || output().map_err(system("create a file in memory"));
        Ok(Streams { input, stdout: output()?, stderr: output()? })
    }

    pub fn descriptors(&self) -> [i32; 3] {
        [self.input.as_raw_fd(), self.stdout.as_raw_fd(), self.stderr.as_raw_fd()]
    }

    /// There is more output than a run may write.
    pub fn over(&self, limits: &Limits) -> bool {
        let most = limits.output.saturating_mul(OUTPUT_ENDS_RUN);
        [&self.stdout, &self.stderr].iter().any(|file| length(file) > most)
    }

    /// The first bytes of standard output and error, and whether there were more.
    pub fn take(mut self, limits: &Limits) -> io::Result<(Vec<u8>, Vec<u8>, bool)> {
        let cut = length(&self.stdout) > limits.output || length(&self.stderr) > limits.output;
        Ok((head(&mut self.stdout, limits.output)?, head(&mut self.stderr, limits.output)?, cut))
    }
}

fn output() -> io::Result<File> {
    let file = memory_file::create(c"output")?;
    // Processes that open it again by /proc/self/fd/1 would otherwise write over each other's lines.
    // SAFETY: plain system call on an open file.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_APPEND) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

fn length(file: &File) -> u64 {
    file.metadata().map_or(0, |m| m.len())
}

fn head(file: &mut File, most: u64) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
