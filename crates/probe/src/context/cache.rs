//! The recent call paths of a thread: a tree of frames. The layout serves `trampoline::record`.
//!
//! An entry is one frame and, through `outer`, everything further out. It holds each stack word that unwinding read to get from this frame to
//! the next: the return address, and where needed the word that says where the next frame is or what its rbp is. If the words of an entry and of all
//! entries further out are unchanged, then unwinding again would give the same path, since it is a function of just these words. Paths share their
//! outer frames, so the many paths of a recursion cost one entry for each frame that is new.
//!
//! Entries never change. When there is no room for more, all are dropped.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use super::unwind::UnwoundFrame;

/// Fibonacci hashing (Knuth vol. 3, 6.4): the top bits of the product are the set.
pub const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const SET_BITS: u32 = 8;
pub const SET_SHIFT: u32 = 64 - SET_BITS;
/// Paths with the same innermost frame that are remembered as recent: a library function at the same stack depth is called
/// from many places. One line.
pub const WAYS: usize = 8;
const HEAD_BITS: u32 = 12;
const ENTRIES: usize = 1 << 14;

/// One frame of a path.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct PathFrame {
    /// Where the return address is: right below the CFA.
    pub return_at: u64,
    pub return_to: u64,
    /// The other word that unwinding from here read, or the return address once more.
    pub link_at: u64,
    pub link: u64,
    /// The caller's rbp, where `NEEDS_RBP`.
    pub rbp: u64,
    /// Address of the next frame's entry; 0: this is the outermost.
    pub outer: u64,
    pub id: u32,
    pub flags: u32,
    /// The next entry with the same hash, plus 1.
    pub next: u32,
}

/// A frame further out was found through the rbp that the caller had.
pub const NEEDS_RBP: u32 = 1;
/// What is further out is not known.
pub const PARTIAL: u32 = 2;

/// No frame: its return address is nowhere.
static NOWHERE: PathFrame =
    PathFrame { return_at: 0, return_to: 0, link_at: 0, link: 0, rbp: 0, outer: 0, id: 0, flags: 0, next: 0 };

#[repr(C)]
struct Memory {
    /// Addresses of entries by innermost frame, the most recent first; 0: none.
    recent: [[u64; WAYS]; 1 << SET_BITS],
    /// Entries by all that makes them what they are: number of the first, plus 1.
    heads: [u32; 1 << HEAD_BITS],
    entries: [PathFrame; ENTRIES],
}

#[repr(C)]
#[derive(Debug)]
pub struct PathCache {
    /// `Memory::recent`.
    pub recent: *mut u64,
    /// Address of the entry of the last path.
    pub last: u64,
    memory: *mut Memory,
    used: usize,
    /// Code went away: nothing of this holds any more.
    stale: AtomicBool,
    /// Frames of the path that is being found; kept for its memory.
    pub unwound: Vec<UnwoundFrame>,
}

impl PathCache {
    pub fn new() -> Self {
        // SAFETY: `Memory` is nothing but integers, and zero is right for all of them.
        let memory = Box::into_raw(unsafe { Box::<Memory>::new_zeroed().assume_init() });
        PathCache {
            recent: memory.cast(),
            last: &raw const NOWHERE as u64,
            memory,
            used: 0,
            stale: AtomicBool::new(false),
            unwound: Vec::new(),
        }
    }

    fn memory(&mut self) -> &mut Memory {
        // SAFETY: made by `new`, and this cache's own.
        unsafe { &mut *self.memory }
    }

    /// The entries with this innermost frame are among these. Same function as in `trampoline::record`.
    fn set(return_at: u64, return_to: u64) -> usize {
        ((return_at ^ return_to).wrapping_mul(SPREAD) >> SET_SHIFT) as usize
    }

    /// Nothing that is remembered holds any more. Other threads call this while the owner runs: it finds no path from here on, and
    /// tidies up when it next adds one.
    pub fn clear(&mut self) {
        self.stale.store(true, Ordering::Release);
        self.last = &raw const NOWHERE as u64;
        for set in &mut self.memory().recent {
            // The owner reads whole words.
            set.iter_mut().for_each(|entry| *entry = 0);
        }
    }

    /// Makes room for `frames` more. Entries that are known before may not exist any more afterwards.
    pub fn make_room(&mut self, frames: usize) {
        let stale = self.stale.swap(false, Ordering::Acquire);
        if !stale && self.used + frames <= ENTRIES {
            return;
        }
        self.used = 0;
        self.last = &raw const NOWHERE as u64;
        let memory = self.memory();
        memory.recent = [[0; WAYS]; 1 << SET_BITS];
        memory.heads = [0; 1 << HEAD_BITS];
    }

    /// The entry at an address that came from this cache.
    pub fn entry(&self, at: u64) -> PathFrame {
        // SAFETY: an entry of `memory`, or `NOWHERE`; both outlive this.
        unsafe { *(at as *const PathFrame) }
    }

    /// Entries of paths that began with this frame lately.
    pub fn recent(&self, frame: &UnwoundFrame) -> [u64; WAYS] {
        // SAFETY: as in `memory`.
        unsafe { (&(*self.memory).recent)[Self::set(frame.return_at(), frame.return_to)] }
    }

    /// The path of this entry is that of an event.
    pub fn used(&mut self, at: u64) {
        self.last = at;
        let PathFrame { return_at, return_to, .. } = self.entry(at);
        let set = &mut self.memory().recent[Self::set(return_at, return_to)];
        let from = set.iter().position(|&other| other == at).unwrap_or(WAYS - 1);
        set[..=from].rotate_right(1);
        set[0] = at;
    }

    fn head(wanted: &PathFrame) -> usize {
        let key = wanted.return_at.wrapping_mul(31) ^ wanted.return_to ^ wanted.outer.rotate_left(20) ^ wanted.link;
        (key.wrapping_mul(SPREAD) >> (64 - HEAD_BITS)) as usize
    }

    /// The entry that is like this one but for its number, if there is one.
    pub fn find(&self, wanted: &PathFrame) -> Option<u64> {
        // SAFETY: as in `memory`.
        let memory = unsafe { &*self.memory };
        let mut next = memory.heads[Self::head(wanted)];
        while next != 0 {
            let entry = &memory.entries[next as usize - 1];
            if entry.return_at == wanted.return_at
                && entry.return_to == wanted.return_to
                && entry.outer == wanted.outer
                && entry.link_at == wanted.link_at
                && entry.link == wanted.link
                && entry.flags == wanted.flags
                && entry.rbp == wanted.rbp
            {
                return Some(&raw const *entry as u64);
            }
            next = entry.next;
        }
        None
    }

    /// Adds an entry; [`PathCache::make_room`] has made room for it. Returns its address.
    pub fn add(&mut self, mut entry: PathFrame) -> u64 {
        let number = self.used;
        self.used += 1;
        let memory = self.memory();
        let head = Self::head(&entry);
        entry.next = core::mem::replace(&mut memory.heads[head], number as u32 + 1);
        memory.entries[number] = entry;
        &raw const memory.entries[number] as u64
    }

    /// Gives the memory back when the thread is over.
    ///
    /// # Safety
    /// The cache is not used afterwards.
    pub unsafe fn free(&mut self) {
        // SAFETY: made by `new`.
        unsafe { drop(Box::from_raw(self.memory)) };
    }
}
