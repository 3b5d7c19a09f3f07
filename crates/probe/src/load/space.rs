//! The engine's own places in the target's address space, apart from the fixed ones of `layout`.
//!
//! Stacks and other large blocks lie from [`BASE`] upward, where neither the kernel nor (in practice) a program puts anything,
//! so that the target's own mappings get the addresses of a native run.

use alloc::vec::Vec;

use crate::layout;
use crate::memory::SpinLock;
use crate::sys::{self, PROT_READ, PROT_WRITE, nr, sys};

/// Where blocks for the engine begin.
pub const BASE: u64 = 0x1000_0000_0000;
pub const END: u64 = 0x1100_0000_0000;
const PAGE: u64 = 4096;

static LOCK: SpinLock = SpinLock::new();
static mut NEXT: u64 = BASE;
/// Returned blocks: (start, bytes).
static mut FREE: Vec<(u64, u64)> = Vec::new();

/// The lock over this table, for fork.
pub fn lock() -> &'static SpinLock {
    &LOCK
}

/// Anonymous readable and writable memory for the engine, with an unmapped page before it.
pub fn map_engine(len: u64) -> u64 {
    let len = (len + PAGE - 1) & !(PAGE - 1);
    let _guard = LOCK.lock();
    // SAFETY: the lock is held.
    let free = unsafe { &mut *core::ptr::addr_of_mut!(FREE) };
    let mut start = 0;
    if let Some(at) = free.iter().position(|block| block.1 == len) {
        start = free.swap_remove(at).0;
    }
    loop {
        if start == 0 {
            // SAFETY: the lock is held.
            unsafe {
                start = NEXT + PAGE;
                NEXT = start + len;
            }
            if start + len > END {
                crate::fail::early("fencepost: the probe has no address space left for itself\n");
            }
        }
        if sys::map_anonymous(start, len, PROT_READ | PROT_WRITE) == start as i64 {
            return start;
        }
        start = 0;
    }
}

/// Gives back what [`map_engine`] gave.
pub fn unmap_engine(start: u64, len: u64) {
    let len = (len + PAGE - 1) & !(PAGE - 1);
    sys!(nr::MUNMAP, start, len);
    forget_engine(start, len);
}

/// As [`unmap_engine`], for a block that is (or will be) unmapped by other means.
pub fn forget_engine(start: u64, len: u64) {
    let _guard = LOCK.lock();
    // SAFETY: the lock is held.
    unsafe { (*core::ptr::addr_of_mut!(FREE)).push((start, (len + PAGE - 1) & !(PAGE - 1))) };
}

/// Does the range touch memory of the engine (its fixed places and its blocks)?
pub fn overlaps_engine(start: u64, len: u64) -> bool {
    let end = start.saturating_add(len);
    let hits = |lo: u64, hi: u64| start < hi && end > lo;
    // SAFETY: a racy read of a number that only grows.
    let top = unsafe { *core::ptr::addr_of!(NEXT) };
    hits(layout::IMAGE, layout::ENGINE_END) || (top != BASE && hits(BASE, top))
}
