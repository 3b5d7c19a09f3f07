//! The recent call paths of a thread. The layout serves `trampoline::record`.

use alloc::boxed::Box;
use alloc::vec;

/// Fibonacci hashing (Knuth vol. 3, 6.4): the top bits of the product are the set.
pub const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const SET_BITS: u32 = 5;
pub const SET_SHIFT: u32 = 64 - SET_BITS;
/// Paths with the same innermost frame that can be remembered at once: a library function at the same stack depth is
/// called from many places.
pub const WAYS: usize = 16;
const ENTRIES: usize = WAYS << SET_BITS;
pub const WORDS: usize = 60;

/// One path, and every stack word that unwinding it read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PathEntry {
    /// The caller's rbp, where some frame further out was found through it.
    pub rbp: u64,
    pub id: u32,
    /// Words in use.
    pub count: u32,
    pub needs_rbp: u32,
    pub _pad: u32,
    /// (address, value)
    pub words: [(u64, u64); WORDS],
}

impl PathEntry {
    pub const EMPTY: PathEntry = PathEntry { rbp: 0, id: 0, count: 0, needs_rbp: 0, _pad: 0, words: [(0, 0); WORDS] };
}

#[repr(C)]
#[derive(Debug)]
pub struct PathCache {
    pub entries: *mut PathEntry,
    /// Frame address of the innermost function of each entry; 0: empty. Apart, so that a set is one line.
    pub tags: *mut u64,
    /// The entry of a set to replace next, for all sets alike.
    turn: usize,
}

impl PathCache {
    pub fn new() -> Self {
        let entries = Box::leak(vec![PathEntry::EMPTY; ENTRIES].into_boxed_slice()).as_mut_ptr();
        let tags = Box::leak(vec![0u64; ENTRIES].into_boxed_slice()).as_mut_ptr();
        PathCache { entries, tags, turn: 0 }
    }

    /// First entry of the set where paths with this innermost frame are. Same function as in `trampoline::record`.
    fn set(cfa: u64, return_to: u64) -> usize {
        ((cfa ^ return_to).wrapping_mul(SPREAD) >> SET_SHIFT) as usize * WAYS
    }

    /// The entries with this innermost frame (and perhaps others, with another return address).
    pub fn candidates(&self, cfa: u64, return_to: u64) -> impl Iterator<Item = &PathEntry> {
        let set = Self::set(cfa, return_to);
        (set..set + WAYS).filter_map(move |i| {
            // SAFETY: both arrays have ENTRIES elements, owned by this cache.
            unsafe { (*self.tags.add(i) == cfa).then(|| &*self.entries.add(i)) }
        })
    }

    /// An entry for a new path; its tag is set.
    pub fn replace(&mut self, cfa: u64, return_to: u64) -> &mut PathEntry {
        self.turn = (self.turn + 1) % WAYS;
        let index = Self::set(cfa, return_to) + self.turn;
        // SAFETY: as above.
        unsafe {
            *self.tags.add(index) = cfa;
            &mut *self.entries.add(index)
        }
    }

    pub fn clear(&mut self) {
        for i in 0..ENTRIES {
            // SAFETY: as above.
            unsafe { *self.tags.add(i) = 0 }
        }
    }

    /// Gives the memory back when the thread is over.
    ///
    /// # Safety
    /// The cache is not used afterwards.
    pub unsafe fn free(&mut self) {
        // SAFETY: made by `new` from boxed slices of this length.
        unsafe {
            drop(Box::from_raw(core::ptr::slice_from_raw_parts_mut(self.entries, ENTRIES)));
            drop(Box::from_raw(core::ptr::slice_from_raw_parts_mut(self.tags, ENTRIES)));
        }
    }
}
