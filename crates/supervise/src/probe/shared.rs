//! The memory that the host shares with every process of the recording: the control area and the ring.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;

use wire::control::{CONTROL_BYTES, Control, MAX_WATCH_SITES, RING_BYTES, WatchSite};
use wire::recover::NOTES_BYTES;

use super::configure::configure;
use super::error::{LaunchError, os};
use super::options::ProbeOptions;
pub use crate::bare::{futex_wait, futex_wake};
use crate::memory_file;

/// The control area and the ring, the ring mapped twice in a row so that a record never wraps.
#[derive(Debug)]
pub struct Shared {
    base: NonNull<u8>,
    /// The memfd, for the target's process.
    fd: File,
    mapped: usize,
}

/// The pid of a free entry in the table of watched functions.
const NOBODY: u32 = u32::MAX;

const MAPPED_BYTES: usize = CONTROL_BYTES + 2 * RING_BYTES;

impl Shared {
    /// `notes`: bytes for the notes of recovery runs (`wire::recover`).
    pub fn create(notes: usize) -> Result<Shared, LaunchError> {
        let fd = memory_file::create(c"fencepost-control").map_err(os("create a memfd"))?;
        // SAFETY: plain system call on our own descriptor.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), (CONTROL_BYTES + RING_BYTES + notes) as i64) } != 0 {
            return Err(os("size the control area (is there a limit on the size of files, `ulimit -f`?)")(
                io::Error::last_os_error(),
            ));
        }
        let base = map(
            ptr::null_mut(),
            MAPPED_BYTES + notes,
            0,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            libc::PROT_NONE,
        )?;
        let shared =
            Shared { base: NonNull::new(base).expect("mmap never returns null"), fd, mapped: MAPPED_BYTES + notes };
        let writable = libc::PROT_READ | libc::PROT_WRITE;
        let fixed = libc::MAP_SHARED | libc::MAP_FIXED;
        let raw = shared.fd.as_raw_fd();
        map(base, CONTROL_BYTES + RING_BYTES, 0, fixed, raw, writable)?;
        map(base.wrapping_add(CONTROL_BYTES + RING_BYTES), RING_BYTES, CONTROL_BYTES, fixed, raw, writable)?;
        if notes != 0 {
            map(base.wrapping_add(MAPPED_BYTES), notes, CONTROL_BYTES + RING_BYTES, fixed, raw, writable)?;
        }
        Ok(shared)
    }

    /// Says what to run and how, before it is started.
    pub fn configure(&mut self, program: &Path, options: &ProbeOptions) -> Result<(), LaunchError> {
        configure(self.control_mut(), program, options)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// What both sides read and write with atomics.
    pub fn control(&self) -> &Control {
        // SAFETY: the mapping is page-aligned, at least as long as `Control` and lives as long as `self`; every bit
        // pattern is a valid `Control`. Fields that are not atomic are only written before the target starts.
        unsafe { self.base.cast::<Control>().as_ref() }
    }

    /// For filling in, before anybody else has the memory mapped.
    pub(crate) fn control_mut(&mut self) -> &mut Control {
        // SAFETY: as above; `&mut self` and the contract of this function exclude other users in this process.
        unsafe { self.base.cast::<Control>().as_mut() }
    }

    /// Tells the processes with this pid where a watched function lies; false if the table is full.
    #[must_use]
    pub fn add_watch_site(&self, pid: u32, watch: u32, address: u64) -> bool {
        let control = self.control();
        let used = control.watch_site_count.load(Ordering::Relaxed) as usize;
        let sites = self.watch_sites();
        for at in 0..MAX_WATCH_SITES {
            // SAFETY: inside the array, which the target only reads. Entries of a process are read by that process
            // only after it got the answer to a request that it makes after each module.
            unsafe {
                let site = sites.add(at);
                if at < used && (*site).pid != NOBODY {
                    continue;
                }
                (&raw mut (*site).watch).write_volatile(watch);
                (&raw mut (*site).address).write_volatile(address);
                (&raw mut (*site).pid).write_volatile(pid);
            }
            control.watch_site_count.store(used.max(at + 1) as u32, Ordering::Release);
            return true;
        }
        false
    }

    fn watch_sites(&self) -> *mut WatchSite {
        // SAFETY: a field of the mapped area; no reference is made.
        unsafe { (&raw mut (*self.base.as_ptr().cast::<Control>()).watch_sites).cast() }
    }

    /// Forgets the watched functions of a process that runs another program now.
    pub fn forget_watch_sites(&self, pid: u32) {
        let control = self.control();
        let used = control.watch_site_count.load(Ordering::Relaxed) as usize;
        let sites = self.watch_sites();
        for at in 0..used {
            // SAFETY: as in `add_watch_site`.
            unsafe {
                let site = sites.add(at);
                if (*site).pid == pid {
                    (&raw mut (*site).pid).write_volatile(NOBODY);
                }
            }
        }
    }

    /// The first `count` notes of a recovery run, or as many as there is room for. The run must be over.
    pub fn notes(&self, count: usize) -> Vec<u64> {
        let count = count.min((self.mapped - MAPPED_BYTES).min(NOTES_BYTES) / 8);
        // SAFETY: the notes lie behind the ring, page-aligned; numbers of any value are valid, and copied before they
        // are looked at.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(MAPPED_BYTES).cast::<u64>(), count) }.to_vec()
    }

    /// What lies behind the notes.
    pub fn behind_notes(&mut self) -> &mut [u8] {
        let start = (MAPPED_BYTES + NOTES_BYTES).min(self.mapped);
        // SAFETY: mapped by `create`; bytes of any value are valid. The caller sees to it that no run is under way.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(start), self.mapped - start) }
    }

    /// The `len` bytes of the ring from stream position `at`.
    ///
    /// # Safety
    /// The producers must have published these bytes and not be given the room back (by moving `tail` past `at`)
    /// while the slice is in use.
    #[inline]
    pub unsafe fn bytes(&self, at: u64, len: usize) -> &[u8] {
        debug_assert!(len <= RING_BYTES);
        let start = CONTROL_BYTES + (at as usize % RING_BYTES);
        // SAFETY: `start + len` is at most `CONTROL_BYTES + 2 * RING_BYTES`, all mapped; the caller vouches for the
        // content.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(start), len) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made by `create`; no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

// SAFETY: the memory is shared between processes anyway; access goes through atomics or as `bytes` demands.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

fn map(at: *mut u8, len: usize, offset: usize, flags: i32, fd: i32, protection: i32) -> Result<*mut u8, LaunchError> {
    // SAFETY: `MAP_FIXED` is only used inside the reservation that `Shared::create` made.
    let base = unsafe { libc::mmap(at.cast(), len, protection, flags, fd, offset as i64) };
    if base == libc::MAP_FAILED {
        return Err(os("map the control area")(io::Error::last_os_error()));
    }
    Ok(base.cast())
}

/// Makes the host look at the ring at once.
pub fn ring_doorbell(control: &Control) {
    control.doorbell.fetch_add(1, Ordering::SeqCst);
    futex_wake(&control.doorbell);
}
