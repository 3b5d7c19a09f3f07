//! The connection to the host: words in a shared file, one writer, one reader.

use std::fs::OpenOptions;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use wire::guest::{MAX_CODE_RANGES, RING_CODE_AT, RING_HEAD, RING_READ_AT, RING_WORDS, RING_WRITTEN_AT};

pub struct Ring {
    base: *mut u8,
    written: u64,
    /// Where the reader was when we looked last.
    read: u64,
}

impl Ring {
    pub fn open(path: &str) -> Option<Ring> {
        let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
        let len = (RING_HEAD + RING_WORDS * 8) as usize;
        let (rights, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a fresh mapping of a file that the host made as long as this.
        let base = unsafe { libc::mmap(ptr::null_mut(), len, rights, shared, file.as_raw_fd(), 0) };
        (base != libc::MAP_FAILED).then_some(Ring { base: base.cast(), written: 0, read: 0 })
    }

    fn position(&self, at: u64) -> &AtomicU64 {
        // SAFETY: inside the mapping's head, aligned, and only ever used as an atomic.
        unsafe { &*self.base.add(at as usize).cast() }
    }

    /// The code whose edges the host wants.
    pub fn code(&self) -> Vec<Range<u64>> {
        let word = |number: u64| self.position(RING_CODE_AT + number * 8).load(Ordering::Acquire);
        let count = word(0).min(MAX_CODE_RANGES as u64);
        (0..count).map(|number| word(1 + number * 2)..word(2 + number * 2)).collect()
    }

    /// All words of one record, which the reader sees at once.
    pub fn put(&mut self, words: &[u64]) {
        while self.written + words.len() as u64 - self.read > RING_WORDS {
            self.read = self.position(RING_READ_AT).load(Ordering::Acquire);
            if self.written + words.len() as u64 - self.read > RING_WORDS {
                thread::sleep(Duration::from_micros(50));
            }
        }
        for (number, &word) in words.iter().enumerate() {
            let at = RING_HEAD + (self.written + number as u64) % RING_WORDS * 8;
            // SAFETY: inside the mapping; the reader does not look at it before `written` says so.
            unsafe { self.base.add(at as usize).cast::<u64>().write(word) };
        }
        self.written += words.len() as u64;
        self.position(RING_WRITTEN_AT).store(self.written, Ordering::Release);
    }
}
