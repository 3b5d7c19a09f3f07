//! The guest's memory: one file of ours that QEMU maps shared. The guest sees what the host writes there.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::process;
use std::ptr;

use wire::guest::{
    MAILBOX_LEN, PM_BASE, REPLY_AT, REPLY_CAPACITY, REPLY_LEN_AT, REQUEST_AT, REQUEST_CAPACITY, REQUEST_LEN_AT,
    mailbox, memory_len,
};

/// A file of memory, mapped.
#[derive(Debug)]
pub struct Shared {
    file: File,
    base: *mut u8,
    len: u64,
}

// SAFETY: the mapping belongs to this value alone; what others (QEMU) do to the memory is not Rust's, and is only looked at when they wait.
unsafe impl Send for Shared {}

impl Shared {
    pub fn create(name: &std::ffi::CStr, len: u64) -> io::Result<Shared> {
        let file = supervise::memory_file::create(name)?;
        file.set_len(len)?;
        let (rights, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
        // SAFETY: a fresh mapping.
        let base = unsafe { libc::mmap(ptr::null_mut(), len as usize, rights, shared, file.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Shared { file, base: base.cast(), len })
    }

    /// How other processes of ours open it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.file.as_raw_fd())
    }

    pub fn read(&self, at: u64, into: &mut [u8]) {
        assert!(at + into.len() as u64 <= self.len);
        // SAFETY: inside the mapping.
        unsafe { ptr::copy_nonoverlapping(self.base.add(at as usize), into.as_mut_ptr(), into.len()) };
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        assert!(at + bytes.len() as u64 <= self.len);
        // SAFETY: inside the mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(at as usize), bytes.len()) };
    }

    pub fn word(&self, at: u64) -> &std::sync::atomic::AtomicU64 {
        assert!(at + 8 <= self.len && at.is_multiple_of(8));
        // SAFETY: inside the mapping, aligned, and used as an atomic by both sides.
        unsafe { &*self.base.add(at as usize).cast() }
    }

    /// Whether these bytes are there already.
    fn equals(&self, at: u64, bytes: &[u8]) -> bool {
        assert!(at + bytes.len() as u64 <= self.len);
        // SAFETY: inside the mapping; nobody writes there while the guest waits.
        unsafe { std::slice::from_raw_parts(self.base.add(at as usize), bytes.len()) == bytes }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody uses any more.
        unsafe { libc::munmap(self.base.cast(), self.len as usize) };
    }
}

/// All memory of a guest, with its PM region and its mailbox.
#[derive(Debug)]
pub struct Memory {
    shared: Shared,
    pm: u64,
}

const PAGE: usize = 4096;

impl Memory {
    pub fn create(pm: u64) -> io::Result<Memory> {
        Ok(Memory { shared: Shared::create(c"fencepost-guest", memory_len(pm))?, pm })
    }

    pub fn path(&self) -> String {
        self.shared.path()
    }

    /// Length of all of it.
    pub fn all(&self) -> u64 {
        self.shared.len
    }

    /// Length of the PM region.
    pub fn pm(&self) -> u64 {
        self.pm
    }

    pub fn write_pm(&mut self, offset: u64, bytes: &[u8]) {
        assert!(offset + bytes.len() as u64 <= self.pm);
        self.shared.write(PM_BASE + offset, bytes);
    }

    /// The whole PM region.
    pub fn pm_image(&self) -> Vec<u8> {
        let mut image = vec![0; self.pm as usize];
        self.shared.read(PM_BASE, &mut image);
        image
    }

    /// Puts an image of the whole region there; only pages that differ are written.
    pub fn set_pm(&mut self, image: &[u8]) {
        assert_eq!(image.len() as u64, self.pm);
        for (number, page) in image.chunks(PAGE).enumerate() {
            let at = PM_BASE + (number * PAGE) as u64;
            if !self.shared.equals(at, page) {
                self.shared.write(at, page);
            }
        }
    }

    /// Writes a request; false if it is too long.
    pub fn request(&mut self, text: &str) -> bool {
        let at = mailbox(self.pm);
        if text.len() as u64 > REQUEST_CAPACITY {
            return false;
        }
        self.shared.write(at + REQUEST_AT, text.as_bytes());
        self.shared.write(at + REQUEST_LEN_AT, &(text.len() as u64).to_le_bytes());
        true
    }

    /// The reply; none if it did not fit.
    pub fn reply(&self) -> Option<String> {
        let at = mailbox(self.pm);
        let mut len = [0; 8];
        self.shared.read(at + REPLY_LEN_AT, &mut len);
        let len = u64::from_le_bytes(len);
        if len > REPLY_CAPACITY.min(MAILBOX_LEN) {
            return None;
        }
        let mut bytes = vec![0; len as usize];
        self.shared.read(at + REPLY_AT, &mut bytes);
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}
