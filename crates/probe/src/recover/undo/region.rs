//! The memory that is not put back.
//!
//! It lies at a fixed place. A fork of the process has a copy, and makes its own before it uses any of it.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

use wire::recover::not_put_back;

use crate::layout::{UNDO, UNDO_BYTES, UNDO_PAGES};
use crate::ring::control;
use crate::signal::KernelAction;
use crate::sys::{MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE, MAP_PRIVATE, PROT_READ, PROT_WRITE, nr};

pub const PAGE: u64 = 4096;
/// Copies of pages begin here: at a huge page.
pub const COPIES: u64 = UNDO + (2 << 20);
const STACK: usize = 64 << 10;
/// More than any processor needs for all of its registers (Intel SDM vol. 1 §13.4; AMX has 11 KiB).
pub const XSAVE: usize = 16 << 10;
const MOST_INTERVALS: usize = 1024;
const MOST_ADDED: usize = 256;
const MOST_GONE: usize = 64;
pub const MOST_DESCRIPTORS: usize = 1024;

/// Addresses from `start` to `end`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    pub start: u64,
    pub end: u64,
}

impl Interval {
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end
    }

    /// The part within `start..end`, if there is any.
    pub fn cut(&self, start: u64, end: u64) -> Option<Interval> {
        let part = Interval { start: self.start.max(start), end: self.end.min(end) };
        (part.start < part.end).then_some(part)
    }
}

/// A private mapping, or a part of one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Private {
    pub at: Interval,
    pub prot: u64,
    /// Of no file.
    pub is_anonymous: bool,
}

/// What the kernel was told to do about a signal.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ActionBefore {
    pub signal: i32,
    pub action: KernelAction,
}

/// The kernel is about to be told of another action than this one.
pub fn action_changes(signal: i32, action: KernelAction) {
    let Some(region) = current() else { return };
    if region.actions.iter().all(|before| before.signal != signal) {
        // There is room for all signals.
        region.actions.push(ActionBefore { signal, action });
    }
}

/// A list of fixed room.
#[repr(C)]
#[derive(Debug)]
pub struct List<T: Copy, const N: usize> {
    len: Cell<usize>,
    items: [Cell<T>; N],
}

impl<T: Copy, const N: usize> List<T, N> {
    /// False: there is no room.
    pub fn push(&self, item: T) -> bool {
        let len = self.len.get();
        let Some(place) = self.items.get(len) else { return false };
        place.set(item);
        self.len.set(len + 1);
        true
    }

    pub fn items(&self) -> &[Cell<T>] {
        &self.items[..self.len.get()]
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> + '_ {
        self.items().iter().map(Cell::get)
    }

    pub fn clear(&self) {
        self.len.set(0);
    }

    pub fn swap_remove(&self, at: usize) {
        let last = self.len.get() - 1;
        self.items[at].set(self.items[last].get());
        self.len.set(last);
    }
}

#[repr(C, align(64))]
#[derive(Debug)]
pub struct Region {
    /// All registers that the engine does not save itself.
    pub xsave: [Cell<u8>; XSAVE],
    /// The stack pointer at the checkpoint.
    pub rsp: Cell<u64>,
    /// Top of the stack below.
    pub stack_top: Cell<u64>,
    /// Why the run cannot be undone ([`not_put_back`]).
    pub reason: Cell<u32>,
    /// How the run ended, as `wait` tells it.
    pub status: Cell<i32>,
    pub parent: Cell<u64>,
    /// Hints that there were when the run began.
    pub hints: Cell<u32>,
    /// Processor time at which the process ends, in microseconds; 0: its runs have no limit.
    pub cpu_until: Cell<u64>,
    /// The kernel's break, and whether it was moved.
    pub brk: Cell<u64>,
    pub brk_moved: Cell<bool>,
    /// Where the stack may have grown: what lies below its mapping.
    pub below_stack: Cell<Interval>,
    /// What was mapped, ascending, in as few intervals as possible.
    pub mapped: List<Interval, MOST_INTERVALS>,
    /// Private mappings, and which of them can be written.
    pub private: List<Private, MOST_INTERVALS>,
    pub writable: List<Interval, MOST_INTERVALS>,
    /// Parts of them that the run has unmapped, and can be mapped anew.
    pub gone: List<Private, MOST_GONE>,
    /// Parts whose pages it has given back.
    pub dropped: List<Private, MOST_GONE>,
    /// Parts that the run has given other rights.
    pub protected: List<Private, MOST_GONE>,
    /// What the run has mapped.
    pub added: List<Interval, MOST_ADDED>,
    /// Open descriptors, a bit each.
    pub descriptors: [Cell<u64>; MOST_DESCRIPTORS / 64],
    /// Pages that are copied back, ascending; the copies are in the same order.
    pub pages: List<u64, { UNDO_PAGES as usize }>,
    /// Actions for signals that the kernel was told by the run, and what it was told before.
    pub actions: List<ActionBefore, 64>,
    stack: [Cell<u8>; STACK],
}

const _: () = assert!((size_of::<Region>() as u64) < COPIES - UNDO);

/// This process is a run that has a region. Put back like all of the probe's own memory, to what it was at the checkpoint.
static ON: AtomicBool = AtomicBool::new(false);

/// The region, in a run that can be undone.
pub fn current() -> Option<&'static Region> {
    // SAFETY: `create` has mapped it, zeroed, which is a valid value; there is one thread, or nothing is done with it but reading `reason`.
    ON.load(Ordering::Relaxed).then(|| unsafe { &*(UNDO as *const Region) })
}

/// The process has no region, or not its own.
pub fn leave() {
    ON.store(false, Ordering::Relaxed);
}

/// A new one, in place of what the process that this one was forked from may have.
pub fn create() -> Option<&'static Region> {
    ON.store(false, Ordering::Relaxed);
    const FLAGS: u64 = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    // SAFETY: a place that is kept for this alone.
    let got = unsafe { crate::sys::call(nr::MMAP, [UNDO, UNDO_BYTES, PROT_READ | PROT_WRITE, FLAGS, u64::MAX, 0]) };
    if got != UNDO as i64 {
        return None;
    }
    ON.store(true, Ordering::Relaxed);
    let region = current()?;
    let stack = region.stack.as_ptr() as u64 + STACK as u64;
    region.stack_top.set(stack & !63);
    Some(region)
}

impl Region {
    /// The run cannot be undone. The first reason counts.
    pub fn refuse(&self, reason: u32, detail: u64) {
        if self.reason.get() == not_put_back::NONE {
            self.reason.set(reason);
            control().recovery.not_put_back_detail.store(detail, Ordering::Relaxed);
        }
    }
}
