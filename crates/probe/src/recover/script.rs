//! Operations of a run: lines of the file behind standard input; the host names their byte ranges. The probe reports what was written to
//! standard output before each read, so that the host can separate the answers.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use wire::recover::{MAX_ANSWERS, MAX_BYTE_RANGES};

use crate::pm::pools::Stat;
use crate::ring::control;
use crate::sys::{nr, raw};

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
            let mut bytes = alloc::vec![0u8; most.min((end - at) as usize)];
            // SAFETY: the kernel writes at most `bytes.len()` bytes into `bytes`.
            let got = unsafe { raw!(nr::PREAD64, fd, bytes.as_mut_ptr(), bytes.len(), at) }.max(0) as usize;
            bytes.truncate(got);
            if let Some(newline) = bytes.iter().position(|b| *b == b'\n') {
                bytes.truncate(newline + 1);
            }
            recovery.offset.store(at + bytes.len() as u64, Ordering::Relaxed);
            return bytes;
        }
        recovery.byte_range.store(byte_range as u32 + 1, Ordering::Relaxed);
        recovery.offset.store(first(byte_range + 1), Ordering::Relaxed);
    }
}

/// An operation, if there was one, is over: what came out until now is its answer.
pub fn answered() {
    let recovery = &control().recovery;
    let at = recovery.answer_count.fetch_add(1, Ordering::Relaxed) as usize;
    if at < MAX_ANSWERS {
        let len = Stat::of(1).map_or(0, |stat| stat.size as u32);
        recovery.answers[at].store(len, Ordering::Relaxed);
    }
}
