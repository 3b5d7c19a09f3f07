//! The program break. The kernel's break is behind the probe's image; the target's must be behind the target's image, as in a native run.
//! If the kernel can be told so ([`identity`]), it manages the break; otherwise this module does.
//!
//! In recovery runs, a heap that grows large is mapped ahead in blocks that the kernel can fill with huge pages: `pmemobj_open`
//! accesses 2,000 pages of heap, and faulting them in one by one took a third of a recovery (2 µs each; a block of 512 takes 150 µs).
//! Memory behind the break cannot be accessed, as in a native run: a wild pointer must find nothing there.

use core::sync::atomic::{AtomicU64, Ordering};

use super::identity;
use crate::ring::control;
use crate::sys::{self, PROT_READ, PROT_WRITE, nr, raw};

const PAGE: u64 = 4096;
/// A huge page.
const BLOCK: u64 = 2 << 20;
/// A heap that grows by so much in a run is large.
const LARGE: u64 = 1 << 20;

static START: AtomicU64 = AtomicU64::new(0);
/// The break as far as memory is mapped. Not kept where the kernel does.
static BREAK: AtomicU64 = AtomicU64::new(0);
/// Where the break was when the run began; 0: there is none.
static AT_FORK: AtomicU64 = AtomicU64::new(0);
/// With blocks: the break that the program knows, and the end of what is mapped. 0: no blocks.
static TOLD: AtomicU64 = AtomicU64::new(0);
static MAPPED: AtomicU64 = AtomicU64::new(0);

/// The heap begins at `end_of_image`, rounded up to a page as the kernel does (`fs/binfmt_elf.c`).
pub fn init(end_of_image: u64) {
    let start = up(end_of_image, PAGE);
    START.store(start, Ordering::Relaxed);
    BREAK.store(start, Ordering::Relaxed);
}

/// In the process of a recovery run or a reference run, before it goes on.
pub fn run_begins() {
    AT_FORK.store(map(0), Ordering::Relaxed);
}

/// First byte and end of the heap.
pub fn range() -> (u64, u64) {
    let told = TOLD.load(Ordering::Relaxed);
    let end = if told == 0 { BREAK.load(Ordering::Relaxed) } else { told };
    (START.load(Ordering::Relaxed), up(end, PAGE))
}

/// `brk(2)` as the kernel does it: the new break, or the old one if that cannot be. The caller holds the memory lock.
pub fn set(wanted: u64) -> u64 {
    if TOLD.load(Ordering::Relaxed) == 0 {
        if !grows_large(wanted) {
            return map(wanted);
        }
        let now = map(0);
        TOLD.store(now, Ordering::Relaxed);
        MAPPED.store(up(now, PAGE), Ordering::Relaxed);
    }
    let now = TOLD.load(Ordering::Relaxed);
    if is_absurd(wanted) {
        return now;
    }
    let (old_end, new_end) = (up(now, PAGE), up(wanted, PAGE));
    let done = if new_end < old_end { shrink(new_end) } else { grow(old_end, new_end) };
    if !done {
        return now;
    }
    TOLD.store(wanted, Ordering::Relaxed);
    wanted
}

/// Does the break grow so far in this run, or has it in one before?
fn grows_large(wanted: u64) -> bool {
    let at_fork = AT_FORK.load(Ordering::Relaxed);
    if at_fork == 0 || wanted <= at_fork {
        return false;
    }
    let grown = &control().recovery.heap_grown;
    grown.fetch_max(wanted - at_fork, Ordering::Relaxed).max(wanted - at_fork) >= LARGE
}

/// What grows again shall be zero, as natively.
fn shrink(end: u64) -> bool {
    let done = map(end) == end;
    if done {
        MAPPED.store(end, Ordering::Relaxed);
    }
    done
}

fn grow(from: u64, to: u64) -> bool {
    let mapped = MAPPED.load(Ordering::Relaxed);
    let inside = to.min(mapped);
    if inside > from {
        // SAFETY: the part of the program's heap that it has just asked for; nothing of ours lies there.
        unsafe { raw!(nr::MPROTECT, from, inside - from, PROT_READ | PROT_WRITE) };
    }
    if to <= mapped {
        return true;
    }
    let ahead = up(to, BLOCK);
    if map(ahead) != ahead {
        // There may be room for what is asked for.
        let done = map(to) == to;
        MAPPED.store(if done { to } else { mapped }, Ordering::Relaxed);
        return done;
    }
    fill(up(mapped, BLOCK), ahead);
    MAPPED.store(ahead, Ordering::Relaxed);
    if ahead > to {
        // SAFETY: behind the program's break, where nothing of its own lies yet.
        unsafe { raw!(nr::MPROTECT, to, ahead - to, 0) };
    }
    true
}

/// Has the kernel put a huge page into each block. It does so only at the first touch, with access to all of it.
fn fill(start: u64, end: u64) {
    const MADV_HUGEPAGE: u64 = 14;
    if start >= end {
        return;
    }
    // SAFETY: advice on the program's heap; its content stays.
    unsafe { raw!(nr::MADVISE, start, end - start, MADV_HUGEPAGE) };
    for block in (start..end).step_by(BLOCK as usize) {
        // SAFETY: just mapped, writable, and nobody's yet.
        unsafe { (block as *mut u8).write_volatile(0) };
    }
}

/// The memory of the heap ends here, if possible: where it ends.
fn map(wanted: u64) -> u64 {
    if identity::assumed() {
        // SAFETY: the program's own break, as it wants it.
        return unsafe { raw!(nr::BRK, wanted) } as u64;
    }
    let now = BREAK.load(Ordering::Relaxed);
    if is_absurd(wanted) {
        return now;
    }
    let (old_end, new_end) = (up(now, PAGE), up(wanted, PAGE));
    if new_end > old_end {
        let len = new_end - old_end;
        let got = sys::map_anonymous(old_end, len, PROT_READ | PROT_WRITE);
        if got != old_end as i64 {
            return now;
        }
    } else if new_end < old_end {
        // SAFETY: behind the program's new break: it has given that memory back.
        unsafe { raw!(nr::MUNMAP, new_end, old_end - new_end) };
    }
    BREAK.store(wanted, Ordering::Relaxed);
    wanted
}

/// No break can be there.
fn is_absurd(wanted: u64) -> bool {
    wanted < START.load(Ordering::Relaxed) || wanted > 0x7fff_ffff_f000
}

fn up(address: u64, unit: u64) -> u64 {
    address.next_multiple_of(unit)
}
