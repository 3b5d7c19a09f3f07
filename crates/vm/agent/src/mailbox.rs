//! Memory that host and guest share.

use std::fs::{self as files, OpenOptions};
use std::os::fd::AsRawFd;
use std::ptr;
use std::slice;
use std::sync::atomic::{Ordering, compiler_fence};

use wire::guest::{
    MAILBOX_LEN, MARK_AT, Mark, REPLY_AT, REPLY_CAPACITY, REPLY_LEN_AT, REQUEST_AT, REQUEST_CAPACITY, REQUEST_LEN_AT,
};

#[derive(Debug)]
pub struct Mailbox {
    base: *mut u8,
}

impl Mailbox {
    /// The kernel's command line says where it lies: `fencepost.mailbox=ADDRESS`.
    pub fn open() -> Result<Mailbox, String> {
        let line = files::read_to_string("/proc/cmdline").map_err(|error| format!("/proc/cmdline: {error}"))?;
        let word = line.split_whitespace().find_map(|word| word.strip_prefix("fencepost.mailbox="));
        let at: i64 = word.and_then(|at| at.parse().ok()).ok_or("the kernel's command line names no mailbox")?;
        let memory = OpenOptions::new().read(true).write(true).open("/dev/mem");
        let memory = memory.map_err(|error| format!("/dev/mem: {error}"))?;
        let (rights, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping.
        let base = unsafe { libc::mmap(ptr::null_mut(), MAILBOX_LEN as usize, rights, shared, memory.as_raw_fd(), at) };
        if base == libc::MAP_FAILED {
            return Err(format!("cannot map the mailbox: {}", std::io::Error::last_os_error()));
        }
        Ok(Mailbox { base: base.cast() })
    }

    fn word(&self, at: u64) -> *mut u64 {
        // SAFETY: all these places are inside the mapping.
        unsafe { self.base.add(at as usize) }.cast()
    }

    /// The plugin sees this store, in order with all others.
    pub fn mark(&self, mark: Mark, number: u64) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: inside the mapping, aligned; nobody else writes it.
        unsafe { self.word(MARK_AT).write_volatile(mark.word(number)) };
        compiler_fence(Ordering::SeqCst);
    }

    pub fn request(&self) -> String {
        // SAFETY: the host has written both before it rang, and waits now.
        let bytes = unsafe {
            let len = self.word(REQUEST_LEN_AT).read_volatile().min(REQUEST_CAPACITY);
            slice::from_raw_parts(self.base.add(REQUEST_AT as usize), len as usize)
        };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// What does not fit is cut off; the host sees that by the length.
    pub fn reply(&self, text: &str) {
        let fits = text.len().min(REPLY_CAPACITY as usize);
        // SAFETY: inside the mapping; the host does not look before we ring.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), self.base.add(REPLY_AT as usize), fits);
            self.word(REPLY_LEN_AT).write_volatile(text.len() as u64);
        }
        compiler_fence(Ordering::SeqCst);
    }
}
