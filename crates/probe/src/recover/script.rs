//! Operations of a run: lines of the file behind standard input; the host names their byte ranges. The probe reports what was written to
//! standard output before each read, so that the host can separate the answers.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use wire::recover::{MAX_ANSWERS, MAX_BYTE_RANGES};

use crate::lock::{LockName, Locked};
use crate::ring::control;
use crate::sys::{nr, raw};
use crate::syscall::standard;

/// A run begins: from the first byte range on.
pub fn rewind() {
    let recovery = &control().recovery;
    recovery.byte_range.store(0, Ordering::Relaxed);
    recovery.offset.store(first(0), Ordering::Relaxed);
}

/// Where the next line is in the file, if that is in the first byte range.
pub fn place() -> Option<u64> {
    let recovery = &control().recovery;
    (recovery.byte_range.load(Ordering::Relaxed) == 0).then(|| recovery.offset.load(Ordering::Relaxed))
}

fn first(byte_range: usize) -> u64 {
    control().recovery.byte_ranges.get(byte_range).map_or(0, |s| s.from.load(Ordering::Relaxed))
}

/// The next bytes, through this descriptor, at most up to the end of a line; empty at the end of the operations.
pub fn read(fd: i32, most: usize) -> Vec<u8> {
    let recovery = &control().recovery;
    let count = recovery.byte_range_count.load(Ordering::Relaxed) as usize;
    loop {
        let byte_range = recovery.byte_range.load(Ordering::Relaxed) as usize;
        if byte_range >= count.min(MAX_BYTE_RANGES) {
            return Vec::new();
        }
        let (at, end) =
            (recovery.offset.load(Ordering::Relaxed), recovery.byte_ranges[byte_range].to.load(Ordering::Relaxed));
        if at < end {
            let most = most.min((end - at) as usize);
            let bytes =
                if standard::is_alone() { AHEAD.lock().line(fd, at, most) } else { line_of(&pread(fd, at, most)) };
            recovery.offset.store(at + bytes.len() as u64, Ordering::Relaxed);
            return bytes;
        }
        recovery.byte_range.store(byte_range as u32 + 1, Ordering::Relaxed);
        recovery.offset.store(first(byte_range + 1), Ordering::Relaxed);
    }
}

/// Up to the end of its first line.
fn line_of(bytes: &[u8]) -> Vec<u8> {
    let newline = bytes.iter().position(|b| *b == b'\n');
    bytes[..newline.map_or(bytes.len(), |at| at + 1)].to_vec()
}

fn pread(fd: i32, at: u64, most: usize) -> Vec<u8> {
    let mut bytes = alloc::vec![0u8; most];
    // SAFETY: the kernel writes at most `bytes.len()` bytes into `bytes`.
    let got = unsafe { raw!(nr::PREAD64, fd, bytes.as_mut_ptr(), bytes.len(), at) }.max(0) as usize;
    bytes.truncate(got);
    bytes
}

/// What was read of the operations and not yet served.
struct Ahead {
    from: u64,
    bytes: Vec<u8>,
}

static AHEAD: Locked<Ahead> = Locked::new(LockName::ReadAhead, Ahead { from: 0, bytes: Vec::new() });

impl Ahead {
    /// At once.
    const PIECE: usize = 4096;

    fn line(&mut self, fd: i32, at: u64, most: usize) -> Vec<u8> {
        if let Some(line) = self.have(at, most) {
            return line;
        }
        (self.from, self.bytes) = (at, pread(fd, at, Self::PIECE.max(most)));
        self.have(at, most).unwrap_or_else(|| line_of(&self.bytes[..most.min(self.bytes.len())]))
    }

    /// The next line, or `most` bytes of it, if all of that was read.
    fn have(&self, at: u64, most: usize) -> Option<Vec<u8>> {
        let rest = self.bytes.get(usize::try_from(at.checked_sub(self.from)?).ok()?..)?;
        let line = line_of(&rest[..most.min(rest.len())]);
        (line.len() == most || line.last() == Some(&b'\n')).then_some(line)
    }
}

/// Across a fork.
pub fn hold() -> impl Sized {
    AHEAD.lock()
}

/// The host may write other operations.
pub fn forget() {
    AHEAD.lock().bytes.clear();
}

/// An operation, if there was one, is over: what came out until now is its answer.
pub fn answered() {
    let recovery = &control().recovery;
    let at = recovery.answer_count.fetch_add(1, Ordering::Relaxed) as usize;
    if at < MAX_ANSWERS {
        recovery.answers[at].store(standard::output_len() as u32, Ordering::Relaxed);
    }
}
