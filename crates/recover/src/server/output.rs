//! The output streams of a recovery: anonymous files, so that nobody has to read while it runs.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use supervise::memory_file;

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub file: File,
    /// What was written before the fork point: every run has written it.
    before: Vec<u8>,
}

impl Stream {
    pub fn create() -> io::Result<Stream> {
        let file = memory_file::create(c"output")?;
        // Runs begin at the end, wherever those before them have been.
        // SAFETY: plain fcntl on our own descriptor.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_APPEND) };
        Ok(Stream { file, before: Vec::new() })
    }

    /// At the fork point: what is there now belongs to every run.
    pub fn mark(&mut self, most: u64) -> io::Result<()> {
        self.before = self.content(most)?.0;
        self.clear()
    }

    /// Before the command starts anew.
    pub fn reset(&mut self) -> io::Result<()> {
        self.before.clear();
        self.clear()
    }

    /// How much every run has written before the fork point.
    pub fn before_len(&self) -> u32 {
        self.before.len() as u32
    }

    pub fn clear(&self) -> io::Result<()> {
        self.file.set_len(0)
    }

    /// The first `most` bytes, and whether there are more.
    pub fn content(&self, most: u64) -> io::Result<(Vec<u8>, bool)> {
        let len = self.file.metadata()?.len();
        let mut text = self.before.clone();
        let from = text.len();
        let room = most.saturating_sub(from as u64);
        text.resize(from + len.min(room) as usize, 0);
        let mut at = 0;
        while from + at < text.len() {
            match self.file.read_at(&mut text[from + at..], at as u64) {
                Ok(0) => break,
                Ok(n) => at += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        text.truncate(from + at);
        Ok((text, len > room))
    }
}
