//! Which memory is PM: the mappings of pools in this process, as the program sees them.
//!
//! At the program's address, a pool is mapped read-only (unreadable if loads are recorded); its writable alias is at
//! `layout::alias(address)`. Translated code compares with the largest range first (`PM_LO`, `PM_SPAN`), then, if there are
//! others, with each. A wrong "no" is harmless: the store faults on the read-only page and the engine looks again.
//! A wrong "yes" is not, so the tables say "no" while they change.

pub mod glob;
pub mod mapping;
pub mod pools;
pub mod shared;

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::layout;
use crate::lock::{Guard, LockName, Locked};

pub use pools::path_of;

pub const MAX_RANGES: usize = 256;

/// Start of the largest range; `u64::MAX` with a span of 0 while there is none.
pub static PM_LO: AtomicU64 = AtomicU64::new(u64::MAX);
/// Its length.
pub static PM_SPAN: AtomicU64 = AtomicU64::new(0);
pub static RANGE_COUNT: AtomicU32 = AtomicU32::new(0);
/// (start, bytes) of each range, for translated code.
pub static RANGES: Published<(u64, u64)> = Published::new((0, 0));
/// In recovery runs, [`Range::shadow`] of each range.
pub static SHADOWS: Published<Shadow> = Published::new(Shadow { written: 0, noted: 0 });

/// A table that translated code reads without a lock: only its first [`RANGE_COUNT`] entries, and the count is 0 while it changes.
#[repr(transparent)]
#[derive(Debug)]
pub struct Published<T>(UnsafeCell<[T; MAX_RANGES]>);

// SAFETY: written by `publish` alone, which holds `TABLE`; assembly reads what the count covers.
unsafe impl<T: Send> Sync for Published<T> {}

impl<T: Copy> Published<T> {
    const fn new(value: T) -> Published<T> {
        Published(UnsafeCell::new([value; MAX_RANGES]))
    }

    /// `_held`: the lock that makes the caller the only writer.
    fn set(&self, at: usize, value: T, _held: &Guard<'_, Vec<Range>>) {
        // SAFETY: `TABLE` is held, and `RANGE_COUNT` is 0.
        unsafe { (*self.0.get())[at] = value };
    }
}

/// In recovery runs, what is kept of each line of a mapping (see `recover::notes`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shadow {
    /// The word of an address is at (address / 64 * 8) + this.
    pub written: u64,
    /// Its byte is at (address / 64) + this.
    pub noted: u64,
}

/// One byte range of a pool in the address space.
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

/// Sorted by address, without overlap. Locked for look-ups only; who changes mappings holds `syscall::memory`'s lock as well.
static TABLE: Locked<Vec<Range>> = Locked::new(LockName::PmRanges, Vec::new());

/// Holds the table, for fork.
pub fn hold() -> Guard<'static, Vec<Range>> {
    TABLE.lock()
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
    let table = TABLE.lock();
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

/// The first part of a range that is all PM or all not: where the engine (or the kernel) may access it, and how long it is.
pub fn first_part(address: u64, len: u64) -> (u64, u64) {
    let pieces = pieces(address, len);
    let Some(first) = pieces.first() else { return (address, len) };
    if first.start > address {
        return (address, first.start - address);
    }
    let mut end = address;
    for piece in &pieces {
        // Ranges in a row have aliases in a row.
        if piece.start != end
            || layout::alias(piece.start).wrapping_sub(layout::alias(address)) != piece.start - address
        {
            break;
        }
        end = piece.end();
    }
    (layout::alias(address), end - address)
}

/// The PM parts of `start..start+len`, by ascending address.
pub fn pieces(start: u64, len: u64) -> Vec<Range> {
    if PM_LO.load(Ordering::Relaxed) == u64::MAX {
        return Vec::new();
    }
    let end = start.saturating_add(len);
    TABLE.lock().iter().filter_map(|r| r.cut(start, end)).collect()
}

/// Adds a range where there is none. False: the tables are full.
pub fn insert(range: Range) -> bool {
    let mut table = TABLE.lock();
    let at = table.partition_point(|r| r.start < range.start);
    table.insert(at, range);
    publish(&table)
}

/// Forgets `start..start+len`.
pub fn remove(start: u64, len: u64) {
    change(start, len, |_| None);
}

/// Replaces the part of each range within `start..start+len`.
pub fn change(start: u64, len: u64, with: impl Fn(Range) -> Option<Range>) {
    let end = start.saturating_add(len);
    let mut table = TABLE.lock();
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
    publish(&table);
}

/// Rewrites the tables that translated code reads. False: there are too many ranges for them.
fn publish(table: &Guard<'_, Vec<Range>>) -> bool {
    PM_SPAN.store(0, Ordering::SeqCst);
    RANGE_COUNT.store(0, Ordering::SeqCst);
    let mut joined: Vec<(u64, u64, Shadow)> = Vec::with_capacity(table.len());
    for range in table.iter() {
        match joined.last_mut() {
            Some(last) if last.0 + last.1 == range.start && last.2 == range.shadow => last.1 += range.len,
            _ => joined.push((range.start, range.len, range.shadow)),
        }
    }
    if joined.len() > MAX_RANGES {
        return false;
    }
    for (at, &(start, len, shadow)) in joined.iter().enumerate() {
        RANGES.set(at, (start, len), table);
        SHADOWS.set(at, shadow, table);
    }
    let (lo, span) = joined.iter().map(|r| (r.0, r.1)).max_by_key(|r| r.1).unwrap_or((u64::MAX, 0));
    PM_LO.store(lo, Ordering::SeqCst);
    RANGE_COUNT.store(joined.len() as u32, Ordering::SeqCst);
    PM_SPAN.store(span, Ordering::SeqCst);
    true
}
