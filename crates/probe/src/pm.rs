//! Which memory is PM: the mappings of pools in this process, as the program sees them.
//!
//! At the program's address a pool is mapped read-only (unreadable with loads recorded); its writable alias lies at
//! `layout::alias(address)`. Translated code tests against the largest range first (`PM_LO`, `PM_SPAN`), then, if there are
//! others, against each. A wrong "no" is harmless: the store faults on the read-only page and the engine looks again.
//! A wrong "yes" is not: while the tables change they say "no".

pub mod glob;
pub mod mapping;
pub mod pools;
pub mod shared;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::layout;
use crate::memory::SpinLock;

pub use pools::path_of;

pub const MAX_RANGES: usize = 256;

/// Start of the largest range; `u64::MAX` with a span of 0 while there is none.
pub static PM_LO: AtomicU64 = AtomicU64::new(u64::MAX);
/// Its length.
pub static PM_SPAN: AtomicU64 = AtomicU64::new(0);
pub static RANGE_COUNT: AtomicU32 = AtomicU32::new(0);
/// (start, bytes) of each range.
pub static mut RANGES: [(u64, u64); MAX_RANGES] = [(0, 0); MAX_RANGES];
/// In recovery runs, [`Range::shadow`] of each range.
pub static mut SHADOWS: [Shadow; MAX_RANGES] = [Shadow { written: 0, noted: 0 }; MAX_RANGES];

/// In recovery runs, what is kept of each line of a mapping (see `recover::notes`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shadow {
    /// The word of an address is at (address / 64 * 8) + this.
    pub written: u64,
    /// Its byte is at (address / 64) + this.
    pub noted: u64,
}

/// One stretch of a pool in the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub len: u64,
    pub pool: u32,
    /// Where in the pool it begins.
    pub offset: u64,
    /// The protection that the program asked for.
    pub prot: u64,
    pub shadow: Shadow,
}

impl Range {
    pub fn end(&self) -> u64 {
        self.start + self.len
    }

    /// The part of it within `start..end`.
    pub fn cut(&self, start: u64, end: u64) -> Option<Range> {
        let (lo, hi) = (self.start.max(start), self.end().min(end));
        (lo < hi).then(|| Range { start: lo, len: hi - lo, offset: self.offset + (lo - self.start), ..*self })
    }
}

/// Guards `TABLE`. Held for look-ups only; who changes mappings holds `syscall::memory`'s lock as well.
static LOCK: SpinLock = SpinLock::new();
/// Sorted by address, without overlap.
static mut TABLE: Vec<Range> = Vec::new();

/// The lock over the table, for fork.
pub fn lock() -> &'static SpinLock {
    &LOCK
}

fn table() -> &'static mut Vec<Range> {
    // SAFETY: callers hold `LOCK`.
    unsafe { &mut *core::ptr::addr_of_mut!(TABLE) }
}

/// Is there any PM in this process?
pub fn any() -> bool {
    PM_SPAN.load(Ordering::Relaxed) != 0
}

/// The range that an address lies in.
pub fn range_at(address: u64) -> Option<Range> {
    let lo = PM_LO.load(Ordering::Relaxed);
    // The usual answer, without the lock.
    if !any() && lo == u64::MAX {
        return None;
    }
    let _guard = LOCK.lock();
    let table = table();
    let after = table.partition_point(|r| r.start <= address);
    table[..after].last().filter(|r| address < r.end()).copied()
}

/// Is this byte PM?
pub fn is_pm(address: u64) -> bool {
    range_at(address).is_some()
}

/// Pool, offset in it, and bytes left in this range.
pub fn lookup(address: u64) -> Option<(u32, u64, u64)> {
    range_at(address).map(|r| (r.pool, r.offset + (address - r.start), r.end() - address))
}

/// Where the engine (or the kernel on the program's behalf) may write this byte.
pub fn alias_of(address: u64) -> u64 {
    if any() && is_pm(address) { layout::alias(address) } else { address }
}

/// The PM parts of `start..start+len`, by ascending address.
pub fn pieces(start: u64, len: u64) -> Vec<Range> {
    if PM_LO.load(Ordering::Relaxed) == u64::MAX {
        return Vec::new();
    }
    let end = start.saturating_add(len);
    let _guard = LOCK.lock();
    table().iter().filter_map(|r| r.cut(start, end)).collect()
}

/// Adds a range where there is none. False: the tables are full.
pub fn insert(range: Range) -> bool {
    let _guard = LOCK.lock();
    let table = table();
    let at = table.partition_point(|r| r.start < range.start);
    table.insert(at, range);
    publish(table)
}

/// Forgets `start..start+len`.
pub fn remove(start: u64, len: u64) {
    change(start, len, |_| None);
}

/// Replaces the part of each range within `start..start+len`.
pub fn change(start: u64, len: u64, with: impl Fn(Range) -> Option<Range>) {
    let end = start.saturating_add(len);
    let _guard = LOCK.lock();
    let table = table();
    let mut changed = Vec::with_capacity(table.len() + 2);
    for range in table.iter() {
        let Some(inside) = range.cut(start, end) else {
            changed.push(*range);
            continue;
        };
        changed.extend(range.cut(0, start));
        changed.extend(with(inside));
        changed.extend(range.cut(end, u64::MAX));
    }
    *table = changed;
    publish(table);
}

/// Rewrites the tables that translated code reads. False: there are too many ranges for them.
fn publish(table: &[Range]) -> bool {
    PM_SPAN.store(0, Ordering::SeqCst);
    RANGE_COUNT.store(0, Ordering::SeqCst);
    let mut count = 0;
    let mut end = 0;
    for range in table {
        // SAFETY: `LOCK` is held; translated code looks at `RANGE_COUNT` entries only, now none.
        unsafe {
            if count > 0 && end == range.start && SHADOWS[count - 1] == range.shadow {
                RANGES[count - 1].1 += range.len;
            } else if count == MAX_RANGES {
                return false;
            } else {
                RANGES[count] = (range.start, range.len);
                SHADOWS[count] = range.shadow;
                count += 1;
            }
        }
        end = range.end();
    }
    // SAFETY: as above.
    let ranges = unsafe { &(&*core::ptr::addr_of!(RANGES))[..count] };
    let (lo, span) = ranges.iter().copied().max_by_key(|r| r.1).unwrap_or((u64::MAX, 0));
    PM_LO.store(lo, Ordering::SeqCst);
    RANGE_COUNT.store(count as u32, Ordering::SeqCst);
    PM_SPAN.store(span, Ordering::SeqCst);
    true
}
