//! The engine's own memory in the target's address space, apart from the fixed addresses of `layout`.
//!
//! Stacks and other large blocks are placed from [`BASE`] upward, where neither the kernel nor (in practice) a program puts anything,
//! so that the target's own mappings get the addresses of a native run.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::layout;
use crate::lock::{Guard, LockName, Locked};
use crate::sys::{self, PROT_READ, PROT_WRITE, nr, raw};

/// Where blocks for the engine begin.
pub const BASE: u64 = 0x2a00_0000_0000;
pub const END: u64 = 0x2b00_0000_0000;
/// Blocks do not get so far: `recover::undo` keeps its own there.
const BLOCKS_END: u64 = layout::UNDO;
const PAGE: u64 = 4096;

/// Where blocks have not been given out yet. Changed with `FREE` held.
static NEXT: AtomicU64 = AtomicU64::new(BASE);
/// Returned blocks: (start, bytes).
static FREE: Locked<Vec<(u64, u64)>> = Locked::new(LockName::FreeSpace, Vec::new());

/// Holds the list of free blocks, for fork.
pub fn hold() -> Guard<'static, Vec<(u64, u64)>> {
    FREE.lock()
}

/// Anonymous readable and writable memory for the engine, with an unmapped page before it.
pub fn map_engine(len: u64) -> u64 {
    let len = (len + PAGE - 1) & !(PAGE - 1);
    let mut free = FREE.lock();
    let mut start = 0;
    if let Some(at) = free.iter().position(|block| block.1 == len) {
        start = free.swap_remove(at).0;
    }
    loop {
        if start == 0 {
            start = NEXT.load(Ordering::Relaxed) + PAGE;
            NEXT.store(start + len, Ordering::Relaxed);
            if start + len > BLOCKS_END {
                crate::fail::early("fencepost: the probe has no address space left for itself\n");
            }
        }
        if sys::map_anonymous(start, len, PROT_READ | PROT_WRITE) == start as i64 {
            return start;
        }
        start = 0;
    }
}

/// A larger block with the content of this one, which is given back. The pages move: no byte is copied. 0: no memory.
pub fn grow_engine(start: u64, len: u64, new_len: u64) -> u64 {
    const MAYMOVE_TO: u64 = 1 | 2;
    let whole = |len: u64| (len + PAGE - 1) & !(PAGE - 1);
    let to = map_engine(new_len);
    // SAFETY: both are blocks of the engine's own; its owner gives back the old one, and nobody has the new one yet.
    let answer = unsafe { raw!(nr::MREMAP, start, whole(len), whole(new_len), MAYMOVE_TO, to) };
    if answer != to as i64 {
        return 0;
    }
    forget_engine(start, len);
    to
}

/// Gives back what [`map_engine`] gave.
pub fn unmap_engine(start: u64, len: u64) {
    let len = (len + PAGE - 1) & !(PAGE - 1);
    // SAFETY: memory of the engine that its owner gives back.
    unsafe { raw!(nr::MUNMAP, start, len) };
    forget_engine(start, len);
}

/// As [`unmap_engine`], for a block that is (or will be) unmapped by other means.
pub fn forget_engine(start: u64, len: u64) {
    FREE.lock().push((start, (len + PAGE - 1) & !(PAGE - 1)));
}

/// Does the range touch memory of the engine (its fixed places and its blocks)?
pub fn overlaps_engine(start: u64, len: u64) -> bool {
    let end = start.saturating_add(len);
    let hits = |lo: u64, hi: u64| start < hi && end > lo;
    let top = NEXT.load(Ordering::Relaxed);
    hits(layout::IMAGE, layout::ENGINE_END)
        || hits(layout::UNDO, layout::UNDO + layout::UNDO_BYTES)
        || (top != BASE && hits(BASE, top))
}
