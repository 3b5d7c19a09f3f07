//! Which mappings a run changes: it can take away what it made, but not bring back what it took away.

use core::cell::Cell;

use wire::recover::not_put_back;

use super::region::{self, Interval, PAGE, Private, Region};
use crate::sys::{PROT_WRITE, nr};
use crate::syscall::dispatch::Call;

fn pages(len: u64) -> u64 {
    len.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// A call about mappings was made, by the program or by the engine, with this answer.
#[inline(never)]
pub fn changed(call: u64, args: &[u64; 6], answer: i64) {
    let Some(region) = region::current() else { return };
    let (start, len) = (args[0], pages(args[1]));
    let was_there = |start: u64, len: u64| region.was_mapped(start, start.saturating_add(len));
    let refuse = || region.refuse(not_put_back::MAPPINGS, call);
    match call {
        nr::MMAP if answer >= 0 => region.add(answer as u64, len),
        nr::MUNMAP if region.is_gone(start, start.saturating_add(len)) => {}
        nr::MUNMAP if was_there(start, len) => refuse(),
        nr::MUNMAP if answer == 0 => region.forget(start, len),
        nr::MREMAP if answer >= 0 => {
            // An old length of 0 makes a second mapping of the same.
            if args[1] != 0 && was_there(start, len) {
                refuse();
            }
            region.add(answer as u64, pages(args[2]));
        }
        // Even those that fail may have done a part.
        nr::MPROTECT if was_there(start, len) && region.protect(start, start.saturating_add(len), args[2]) => {}
        nr::MPROTECT | nr::PKEY_MPROTECT if was_there(start, len) => refuse(),
        nr::MADVISE if args[2] == MADV_DONTNEED && region.is_kept(start, start.saturating_add(len)) => {}
        nr::MADVISE if !is_harmless(args[2]) && was_there(start, len) => refuse(),
        nr::BRK => {
            let end = answer as u64;
            region.brk_moved.set(region.brk_moved.get() || end != region.brk.get());
            if end < region.brk.get() {
                refuse();
            }
        }
        nr::SHMAT | nr::REMAP_FILE_PAGES => refuse(),
        _ => {}
    }
}

const MADV_DONTNEED: u64 = 4;

/// The program is about to make a call that takes away memory. If that was there when the run began, it can be brought back as long as
/// there are copies of all its pages.
pub fn before(region: &Region, call: Call) {
    let [start, len, advice, ..] = call.args;
    let end = start.saturating_add(pages(len));
    let drops = call.nr == nr::MUNMAP || call.nr == nr::MADVISE && advice == MADV_DONTNEED;
    if !drops || start % PAGE != 0 || !region.was_mapped(start, end) || !region.is_private(start, end) {
        return;
    }
    if !super::pages::keeps(region, region.private_parts(start, end)) {
        return region.refuse(not_put_back::NEW_PAGES, call.nr);
    }
    for part in region.private_parts(start, end) {
        let list = if call.nr == nr::MUNMAP { &region.gone } else { &region.dropped };
        if !list.push(part) {
            region.refuse(not_put_back::MAPPINGS, call.nr);
        }
    }
}

/// Advice that changes no content.
fn is_harmless(advice: u64) -> bool {
    const MADV_WILLNEED: u64 = 3;
    const MADV_HUGEPAGE: u64 = 14;
    const MADV_NOHUGEPAGE: u64 = 15;
    advice <= MADV_WILLNEED || advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE
}

impl Region {
    /// The parts of private mappings in a range.
    fn private_parts(&self, start: u64, end: u64) -> impl Iterator<Item = Private> + '_ {
        self.private.iter().filter_map(move |private| Some(Private { at: private.at.cut(start, end)?, ..private }))
    }

    /// Is all that was mapped there memory of no file, and private?
    fn is_private(&self, start: u64, end: u64) -> bool {
        let bytes = |parts: &mut dyn Iterator<Item = Interval>| parts.map(|part| part.end - part.start).sum::<u64>();
        let there = bytes(&mut self.mapped.iter().filter_map(|mapped| mapped.cut(start, end)));
        there == bytes(&mut self.private_parts(start, end).filter(|part| part.is_anonymous).map(|part| part.at))
    }

    /// Has `before` seen to it that it can be brought back?
    fn covers(&self, list: &[Cell<Private>], start: u64, end: u64) -> bool {
        let parts = self.mapped.iter().filter_map(|mapped| mapped.cut(start, end));
        parts.into_iter().all(|mapped| {
            let mut at = mapped.start;
            while at < mapped.end {
                let Some(part) = list.iter().map(Cell::get).find(|part| part.at.start <= at && at < part.at.end) else {
                    return false;
                };
                at = part.at.end;
            }
            true
        })
    }

    fn is_gone(&self, start: u64, end: u64) -> bool {
        self.covers(self.gone.items(), start, end)
    }

    fn is_kept(&self, start: u64, end: u64) -> bool {
        self.covers(self.dropped.items(), start, end)
    }

    /// Other rights for what was there. What could not be written at the checkpoint must not be written now: it is not looked at.
    fn protect(&self, start: u64, end: u64, prot: u64) -> bool {
        let is_all = self.is_private_or_file(start, end);
        is_all
            && self
                .private_parts(start, end)
                .all(|part| (prot & PROT_WRITE == 0 || part.prot & PROT_WRITE != 0) && self.protected.push(part))
    }

    fn is_private_or_file(&self, start: u64, end: u64) -> bool {
        let there: u64 =
            self.mapped.iter().filter_map(|mapped| mapped.cut(start, end)).map(|at| at.end - at.start).sum();
        there == self.private_parts(start, end).map(|part| part.at.end - part.at.start).sum()
    }

    /// Was anything there when the run began?
    fn was_mapped(&self, start: u64, end: u64) -> bool {
        let intervals = self.mapped.items();
        let at = intervals.partition_point(|interval| interval.get().end <= start);
        intervals.get(at).is_some_and(|interval| interval.get().overlaps(start, end))
    }

    fn add(&self, start: u64, len: u64) {
        let end = start.saturating_add(len);
        if self.was_mapped(start, end) || !self.added.push(Interval { start, end }) {
            self.refuse(not_put_back::MAPPINGS, nr::MMAP);
        }
    }

    /// What is unmapped again needs no thought. (Of parts the whole is kept: unmapping what is not there does nothing.)
    fn forget(&self, start: u64, len: u64) {
        let is_it = |added: Interval| added.start == start && added.end == start.saturating_add(len);
        if let Some(at) = self.added.iter().position(is_it) {
            self.added.swap_remove(at);
        }
    }
}
