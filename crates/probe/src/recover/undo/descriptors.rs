//! Descriptors that a run opens are closed; it may not close those that it found.

use alloc::vec;

use super::region::{MOST_DESCRIPTORS, Region};
use crate::sys::{nr, raw, sys};

/// Finds out which there are. False: that is not known, or there are too many.
pub fn look(region: &Region) -> bool {
    const O_DIRECTORY_CLOEXEC: u64 = 0o200000 | 0o2000000;
    /// `struct linux_dirent64`: the length of an entry, and its name.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let folder = sys!(nr::OPEN, c"/proc/self/fd".as_ptr(), O_DIRECTORY_CLOEXEC, 0);
    if folder < 0 {
        return false;
    }
    let mut known = true;
    let mut buffer = vec![0u8; 4096];
    loop {
        // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
        let got = unsafe { raw!(nr::GETDENTS64, folder, buffer.as_mut_ptr(), buffer.len()) };
        if got <= 0 {
            known &= got == 0;
            break;
        }
        let mut entries = &buffer[..got as usize];
        while entries.len() > NAME {
            let len = usize::from(u16::from_le_bytes([entries[LENGTH], entries[LENGTH + 1]]));
            if len <= NAME || len > entries.len() {
                break;
            }
            let name = entries[NAME..len].split(|byte| *byte == 0).next().unwrap_or_default();
            let number = core::str::from_utf8(name).ok().and_then(|name| name.parse::<i64>().ok());
            match number {
                Some(number) if number == folder => {}
                Some(number) if (number as usize) < MOST_DESCRIPTORS => {
                    let word = &region.descriptors[number as usize / 64];
                    word.set(word.get() | 1 << (number % 64));
                }
                Some(_) => known = false,
                None => {}
            }
            entries = &entries[len..];
        }
    }
    sys!(nr::CLOSE, folder);
    known
}

impl Region {
    /// Was this descriptor open when the run began?
    pub fn was_open(&self, fd: i32) -> bool {
        let word = self.descriptors.get((fd as u32 / 64) as usize);
        word.is_some_and(|word| word.get() >> (fd as u32 % 64) & 1 != 0)
    }

    /// Closes all others.
    pub fn close_others(&self) {
        let mut from = 0;
        for fd in 0..MOST_DESCRIPTORS as i32 {
            if self.was_open(fd) {
                if from < fd {
                    sys!(nr::CLOSE_RANGE, from, fd - 1, 0);
                }
                from = fd + 1;
            }
        }
        sys!(nr::CLOSE_RANGE, from, u32::MAX, 0);
    }
}
