//! Large anonymous mappings that runs fill, page by page: the next run gets them in huge pages, as it gets a large heap
//! (`load::heap`). libpmemobj has three MiB of locks for its heap, all of which it creates when it opens a pool.
//!
//! A mapping that is hardly used must not get huge pages: a huge page takes as long to clear as a hundred small ones. So a mapping
//! is inspected when the program unmaps it, and recognised by its address, which is the same in every run.

use core::sync::atomic::{AtomicU64, Ordering};

use wire::recover::dense;

use crate::ring::control;
use crate::sys::{MAP_ANONYMOUS, PROT_READ, PROT_WRITE, nr, raw};

const PAGE: u64 = 4096;
/// A huge page.
const BLOCK: u64 = 2 << 20;
const PAGES: usize = (BLOCK / PAGE) as usize;
/// Looking at larger ones would cost more than is to be had.
const MOST_BLOCKS: u64 = 64;

/// Start and length of mappings of this run that nothing is known of; 0: none.
static WATCHED: [(AtomicU64, AtomicU64); 8] = [const { (AtomicU64::new(0), AtomicU64::new(0)) }; 8];

/// The whole blocks of a mapping.
fn blocks(start: u64, len: u64) -> core::ops::Range<u64> {
    start.next_multiple_of(BLOCK)..(start + len) / BLOCK * BLOCK
}

/// The program has mapped this.
pub fn mapped(start: u64, len: u64, prot: u64, flags: u64) {
    const MAP_PRIVATE: u64 = 2;
    /// What may be more than these: `MAP_NORESERVE`, `MAP_STACK` and others say that little will be used.
    const USUAL: u64 = MAP_PRIVATE | MAP_ANONYMOUS;
    const MADV_HUGEPAGE: u64 = 14;
    let blocks = blocks(start, len);
    if !super::on() || flags != USUAL || prot != PROT_READ | PROT_WRITE || blocks.is_empty() {
        return;
    }
    match known(start) {
        Some(dense::FILLED) => {
            // SAFETY: advice on the program's mapping; its content stays.
            unsafe { raw!(nr::MADVISE, blocks.start, blocks.end - blocks.start, MADV_HUGEPAGE) };
        }
        Some(_) => {}
        None => {
            if let Some(free) = WATCHED.iter().find(|watched| watched.0.load(Ordering::Relaxed) == 0) {
                free.0.store(start, Ordering::Relaxed);
                free.1.store(len, Ordering::Relaxed);
            }
        }
    }
}

/// The program is about to unmap this.
pub fn unmapping(start: u64, len: u64) {
    let is_it = |watched: &&(AtomicU64, AtomicU64)| {
        watched.0.load(Ordering::Relaxed) == start && watched.1.load(Ordering::Relaxed) == len
    };
    let Some(watched) = WATCHED.iter().find(is_it) else { return };
    watched.0.store(0, Ordering::Relaxed);
    let verdict = if is_filled(start, len) { dense::FILLED } else { dense::SPARSE };
    let table = &control().recovery.dense;
    let _ = table
        .iter()
        .find(|entry| entry.compare_exchange(0, start | verdict, Ordering::Relaxed, Ordering::Relaxed).is_ok());
}

/// What an earlier run has shown of the mapping that begins here.
fn known(start: u64) -> Option<u64> {
    let entries = control().recovery.dense.iter().map(|entry| entry.load(Ordering::Relaxed));
    entries.filter(|entry| entry & !(PAGE - 1) == start).map(|entry| entry & (PAGE - 1)).next()
}

/// Are three in four pages there?
fn is_filled(start: u64, len: u64) -> bool {
    let blocks = blocks(start, len);
    let count = (blocks.end - blocks.start) / BLOCK;
    if count > MOST_BLOCKS {
        return false;
    }
    let mut there = 0;
    for block in blocks.step_by(BLOCK as usize) {
        let mut pages = [0u8; PAGES];
        // SAFETY: the kernel writes one byte for each of the `PAGES` pages of a block.
        unsafe { raw!(nr::MINCORE, block, BLOCK, pages.as_mut_ptr()) };
        there += pages.iter().filter(|page| **page & 1 != 0).count() as u64;
    }
    there * 4 >= count * PAGES as u64 * 3
}
