//! Which pages a run has changed, and their copies.
//!
//! After a fork every page that was there belongs to both processes, until one writes to it and gets a copy of its own; and a page that was
//! not there belongs to the one that uses it first. The kernel tells which pages a process has to itself (proc_pid_pagemap(5)). Those are the
//! ones that the run has changed, or the server since the fork, which does no harm.

use core::sync::atomic::Ordering;

use wire::recover::{MAX_CHANGED_PAGES, not_put_back};

use super::region::{COPIES, Interval, PAGE, Private, Region};
use crate::layout::UNDO_PAGES;
use crate::ring::control;
use crate::sys::{nr, raw, sys};

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_A_FILE: u64 = 1 << 61;
const OURS_ALONE: u64 = 1 << 56;

/// From so many pages on, the kernel is asked first which of them are there.
const MANY: u64 = 2048;
const BATCH: usize = 512;

const _: () = assert!(MAX_CHANGED_PAGES as u64 == UNDO_PAGES);

/// Chooses the pages to keep: those that earlier runs have changed.
pub fn choose(region: &Region) {
    let recovery = &control().recovery;
    let count = (recovery.changed_page_count.load(Ordering::Acquire) as usize).min(MAX_CHANGED_PAGES);
    let mut chosen: alloc::vec::Vec<u64> =
        recovery.changed_pages[..count].iter().map(|page| page.load(Ordering::Relaxed)).collect();
    chosen.sort_unstable();
    chosen.dedup();
    region.pages.clear();
    let mut intervals = region.writable.iter().peekable();
    for page in chosen {
        while intervals.next_if(|interval| interval.end <= page).is_some() {}
        if page != 0 && intervals.peek().is_some_and(|interval| interval.start <= page) {
            region.pages.push(page);
        }
    }
}

/// Calls with runs of pages that lie in a row, and where their copies are.
fn in_a_row(region: &Region, mut each: impl FnMut(u64, u64, u64)) {
    let pages = region.pages.items();
    let mut at = 0;
    while at < pages.len() {
        let start = pages[at].get();
        let mut end = at + 1;
        while end < pages.len() && pages[end].get() == start + (end - at) as u64 * PAGE {
            end += 1;
        }
        each(start, COPIES + at as u64 * PAGE, (end - at) as u64 * PAGE);
        at = end;
    }
}

/// Copies the chosen pages.
pub fn keep(region: &Region) {
    const MADV_HUGEPAGE: u64 = 14;
    const A_LOT: usize = 128;
    let count = region.pages.items().len();
    if count >= A_LOT {
        let len = (count as u64 * PAGE).next_multiple_of(2 << 20);
        // SAFETY: advice on the region.
        unsafe { crate::sys::call(nr::MADVISE, [COPIES, len.min(UNDO_PAGES * PAGE), MADV_HUGEPAGE, 0, 0, 0]) };
    }
    in_a_row(region, |page, copy, len| {
        // SAFETY: pages of writable mappings of this process, and room for as many in the region.
        unsafe { core::ptr::copy_nonoverlapping(page as *const u8, copy as *mut u8, len as usize) };
    });
}

/// Makes the chosen pages what they were. Runs on the region's stack.
pub fn put_back(region: &Region) {
    in_a_row(region, |page, copy, len| {
        // SAFETY: as in `keep`; mappings that were there have not changed (`mappings`), and nobody else runs.
        unsafe { core::ptr::copy_nonoverlapping(copy as *const u8, page as *mut u8, len as usize) };
    });
}

/// Are all changed pages among those that were kept? Others are told to the runs to come.
pub fn are_kept(region: &Region) -> Result<(), u32> {
    const O_CLOEXEC: u64 = 0o2000000;
    let pagemap = sys!(nr::OPEN, c"/proc/self/pagemap".as_ptr(), O_CLOEXEC, 0);
    if pagemap < 0 {
        return Err(not_put_back::PAGES);
    }
    let mut look = Look { region, pagemap, wanted: PRESENT | OURS_ALONE, next: 0, new: 0, unknown: false };
    for interval in region.writable.iter() {
        if (interval.end - interval.start) / PAGE <= MANY {
            look.at(interval);
        } else {
            look.where_present(interval);
        }
    }
    sys!(nr::CLOSE, pagemap);
    match look {
        Look { unknown: true, .. } => Err(not_put_back::PAGES),
        Look { new: 0, .. } => Ok(()),
        _ if control().recovery.changed_page_count.load(Ordering::Relaxed) as usize > MAX_CHANGED_PAGES => {
            Err(not_put_back::PAGES)
        }
        _ => Err(not_put_back::NEW_PAGES),
    }
}

/// Are there copies of all pages of these parts? Others are told to the runs to come. (Pages of a part that cannot be written are not copied.)
pub fn keeps(region: &Region, parts: impl Iterator<Item = Private>) -> bool {
    const O_CLOEXEC: u64 = 0o2000000;
    let pagemap = sys!(nr::OPEN, c"/proc/self/pagemap".as_ptr(), O_CLOEXEC, 0);
    if pagemap < 0 {
        return false;
    }
    let mut look = Look { region, pagemap, wanted: PRESENT, next: 0, new: 0, unknown: false };
    parts.for_each(|part| look.at(part.at));
    sys!(nr::CLOSE, pagemap);
    look.new == 0 && !look.unknown
}

struct Look<'a> {
    region: &'a Region,
    pagemap: i64,
    /// Bits of pages that must be kept.
    wanted: u64,
    /// Of the kept pages, the first that has not been passed.
    next: usize,
    new: u64,
    unknown: bool,
}

impl Look<'_> {
    /// Looks at each page.
    fn at(&mut self, interval: Interval) {
        let mut words = [0u64; BATCH];
        let mut start = interval.start;
        while start < interval.end {
            let count = ((interval.end - start) / PAGE).min(BATCH as u64);
            // SAFETY: the kernel writes at most `count` words into `words`.
            let got = unsafe { raw!(nr::PREAD64, self.pagemap, words.as_mut_ptr(), count * 8, start / PAGE * 8) };
            if got != count as i64 * 8 {
                self.unknown = true;
                return;
            }
            for (at, word) in words[..count as usize].iter().enumerate() {
                if word & SWAPPED != 0 {
                    self.unknown = true;
                } else if word & (self.wanted | OF_A_FILE) == self.wanted {
                    self.changed(start + at as u64 * PAGE);
                }
            }
            start += count * PAGE;
        }
    }

    fn changed(&mut self, page: u64) {
        let kept = self.region.pages.items();
        while kept.get(self.next).is_some_and(|kept| kept.get() < page) {
            self.next += 1;
        }
        if kept.get(self.next).is_some_and(|kept| kept.get() == page) {
            return;
        }
        self.new += 1;
        let recovery = &control().recovery;
        let at = recovery.changed_page_count.fetch_add(1, Ordering::Relaxed) as usize;
        if let Some(place) = recovery.changed_pages.get(at) {
            place.store(page, Ordering::Release);
        }
    }

    /// Looks at pages that are there. Code caches and tables are large, and mostly empty.
    fn where_present(&mut self, interval: Interval) {
        /// `PAGEMAP_SCAN` (Linux 6.7), and `struct pm_scan_arg`.
        const PAGEMAP_SCAN: u64 = 0xc060_6610;
        const IS_FILE: u64 = 1 << 2;
        const IS_PRESENT: u64 = 1 << 3;
        const IS_SWAPPED: u64 = 1 << 4;
        const IS_ZERO: u64 = 1 << 5;
        #[repr(C)]
        #[derive(Default)]
        struct Scan {
            size: u64,
            flags: u64,
            start: u64,
            end: u64,
            walk_end: u64,
            regions: u64,
            region_count: u64,
            most_pages: u64,
            inverted: u64,
            all_of: u64,
            any_of: u64,
            told: u64,
        }
        const REGIONS: usize = 128;
        let mut found = [[0u64; 3]; REGIONS];
        let mut start = interval.start;
        while start < interval.end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start,
                end: interval.end,
                regions: found.as_mut_ptr() as u64,
                region_count: REGIONS as u64,
                inverted: IS_FILE | IS_ZERO,
                all_of: IS_FILE | IS_ZERO,
                any_of: IS_PRESENT | IS_SWAPPED,
                told: IS_PRESENT | IS_SWAPPED,
                ..Scan::default()
            };
            // SAFETY: the kernel writes into `scan`, and at most `REGIONS` regions of three words into `found`.
            let got = unsafe { raw!(nr::IOCTL, self.pagemap, PAGEMAP_SCAN, &raw mut scan) };
            if got < 0 || scan.walk_end <= start {
                // An older kernel.
                return self.at(Interval { start, ..interval });
            }
            for region in &found[..(got as usize).min(REGIONS)] {
                self.at(Interval { start: region[0], end: region[1] });
            }
            start = scan.walk_end;
        }
    }
}
