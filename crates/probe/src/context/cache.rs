//! The paths a thread was on lately. Laid out for `gate::record`.

use alloc::boxed::Box;
use alloc::vec;

pub const ENTRIES: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 8;
/// Fibonacci hashing (Knuth vol. 3, 6.4): the top bits of the product are the index.
pub const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
pub const INDEX_SHIFT: u32 = 64 - INDEX_BITS;
pub const WORDS: usize = 60;

/// One path, and every stack word that unwinding it read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Frame address of the innermost function; 0: empty.
    pub cfa: u64,
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

impl Entry {
    pub const EMPTY: Entry = Entry { cfa: 0, rbp: 0, id: 0, count: 0, needs_rbp: 0, _pad: 0, words: [(0, 0); WORDS] };
}

#[repr(C)]
#[derive(Debug)]
pub struct PathCache {
    pub entries: *mut Entry,
}

impl PathCache {
    pub fn new() -> Self {
        PathCache { entries: Box::leak(vec![Entry::EMPTY; ENTRIES].into_boxed_slice()).as_mut_ptr() }
    }

    /// The only entry where this path may be. Same function as in `gate::record`.
    pub fn entry(&mut self, cfa: u64, return_to: u64) -> &mut Entry {
        let index = ((cfa ^ return_to).wrapping_mul(SPREAD) >> INDEX_SHIFT) as usize;
        // SAFETY: `entries` points to ENTRIES entries, owned by this cache.
        unsafe { &mut *self.entries.add(index) }
    }

    pub fn clear(&mut self) {
        for i in 0..ENTRIES {
            // SAFETY: as above.
            unsafe { (*self.entries.add(i)).cfa = 0 }
        }
    }

    /// Gives the memory back when the thread is over.
    ///
    /// # Safety
    /// The cache is not used afterwards.
    pub unsafe fn free(&mut self) {
        // SAFETY: made by `new` from a boxed slice of this length.
        unsafe { drop(Box::from_raw(core::ptr::slice_from_raw_parts_mut(self.entries, ENTRIES))) }
    }
}
