//! Mappings of pools: the program's own, which cannot be written, and the alias, which can.
//!
//! Every function here runs with the lock of `syscall::memory` held.

use alloc::vec::Vec;

use wire::control::option;
use wire::record::{Header, kind};

use super::pools::{self, Stat};
use super::shared::{self, FileKey, Mapping};
use super::{Range, Shadow, pieces};
use crate::layout;
use crate::refuse;
use crate::ring;
use crate::sys::{self, MAP_FIXED, PROT_EXEC, PROT_READ, PROT_WRITE, nr, raw, sys};
use crate::syscall::event;
use crate::thread::Thread;

const MREMAP_MAYMOVE: u64 = 1;
const MREMAP_FIXED: u64 = 2;
/// `MAP_SHARED_VALIDATE` and `MAP_SYNC`: the alias of a DAX mapping must have them too.
const KEPT_FLAGS: u64 = 3 | 0x8_0000;

/// Protection of what the program sees: any store to it faults (and any load, if loads are recorded).
pub fn seen(prot: u64) -> u64 {
    let readable = prot & (PROT_READ | PROT_WRITE) != 0 && ring::control().options & option::LOADS == 0;
    (prot & PROT_EXEC) | if readable { PROT_READ } else { 0 }
}

/// Protection of the alias: a store that the program may not make faults there as well.
fn alias_prot(prot: u64) -> u64 {
    (prot | PROT_READ) & (PROT_READ | PROT_WRITE)
}

/// The program's mapping is there: makes the alias and tells the host.
pub fn added(thread: &mut Thread, range: Range, flags: u64, fd: i32) {
    let alias = layout::alias(range.start);
    // `MAP_SHARED_VALIDATE` knows no `MAP_FIXED_NOREPLACE`: the place is taken first.
    let free = sys::map_anonymous(alias, range.len, 0);
    let flags = (flags & KEPT_FLAGS) | MAP_FIXED;
    let got = if free < 0 {
        free
    } else {
        // SAFETY: the alias' place, which `map_anonymous` has just taken.
        unsafe { raw!(nr::MMAP, alias, range.len, alias_prot(range.prot), flags, fd, range.offset) }
    };
    if got != alias as i64 {
        refuse_alias(thread, range.start, alias, got);
    }
    register(thread, range);
}

/// As [`added`] for a mapping whose descriptor is not at hand: the kernel duplicates a shared mapping for an old length of 0
/// (mremap(2)).
fn added_by_copy(thread: &mut Thread, range: Range) {
    let alias = layout::alias(range.start);
    let free = sys::map_anonymous(alias, range.len, 0);
    let flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    // SAFETY: the alias' place, which `map_anonymous` has just taken; the program's mapping stays.
    let got = if free < 0 { free } else { unsafe { raw!(nr::MREMAP, range.start, 0, range.len, flags, alias) } };
    if got != alias as i64 {
        refuse_alias(thread, range.start, alias, got);
    }
    // SAFETY: the alias, which was just made.
    unsafe { raw!(nr::MPROTECT, alias, range.len, alias_prot(range.prot)) };
    register(thread, range);
}

fn refuse_alias(thread: &mut Thread, start: u64, alias: u64, got: i64) -> ! {
    refuse!(
        thread,
        "the pool mapping at {start:#x} needs a second mapping at {alias:#x}, which cannot be made (error {}): \
         let the program map it elsewhere (PMDK: PMEM_MMAP_HINT)",
        -got
    )
}

fn register(thread: &mut Thread, mut range: Range) {
    range.shadow = crate::recover::notes::shadow(range.start, range.len);
    shared::note_code(range.prot);
    if !super::insert(range) {
        refuse!(thread, "more than {} separate mappings of pools at a time", super::MAX_RANGES);
    }
    tell(thread, kind::MAP, range);
}

fn tell(thread: &mut Thread, kind: u8, range: Range) {
    let header = Header { address: range.start, ..event::header(thread, kind) };
    let parts = [&range.pool.to_le_bytes()[..], &[0; 4], &range.offset.to_le_bytes(), &range.len.to_le_bytes()];
    ring::order(thread).put(header, &parts);
}

/// `start..start+len` no longer shows any pool: takes the aliases away and tells the host. For replaced memory this comes
/// after the real call, for `munmap` before it.
pub fn taken_away(thread: &mut Thread, start: u64, len: u64) {
    shared::unmapped(start, len);
    let gone = pieces(start, len);
    if gone.is_empty() {
        return;
    }
    super::remove(start, len);
    // Parts with different protections are one mapping still.
    let mut told: Vec<Range> = Vec::with_capacity(gone.len());
    for range in gone {
        // SAFETY: the alias of a range that the program no longer has.
        unsafe { raw!(nr::MUNMAP, layout::alias(range.start), range.len) };
        match told.last_mut() {
            Some(last)
                if last.pool == range.pool && last.end() == range.start && last.offset + last.len == range.offset =>
            {
                last.len += range.len;
            }
            _ => told.push(range),
        }
    }
    for range in told {
        tell(thread, kind::UNMAP, range);
    }
}

/// `mprotect` of a range that contains PM: each part gets what it needs.
pub fn protect(thread: &mut Thread, nr_: u64, start: u64, len: u64, prot: u64, key: u64) -> i64 {
    if prot & PROT_WRITE != 0 {
        promote(thread, start, len);
    }
    let inside = pieces(start, len);
    let mut at = start;
    for range in &inside {
        if at < range.start {
            // SAFETY: the program's own request; the engine lies where natively nothing is mapped, so only a program that looks for it names it.
            let result = unsafe { raw!(nr_, at, range.start - at, prot, key) };
            if result < 0 {
                return result;
            }
        }
        // First the alias: an error (no permission) leaves the program's view as it was.
        // SAFETY: the alias of a range in the table.
        let result = unsafe { raw!(nr_, layout::alias(range.start), range.len, alias_prot(prot), key) };
        if result < 0 {
            return result;
        }
        // SAFETY: a range of the table, as the program wants it, less the right to store there.
        let result = unsafe { raw!(nr_, range.start, range.len, seen(prot) | (prot & !7), key) };
        if result < 0 {
            return result;
        }
        at = range.end();
    }
    super::change(start, len, |range| Some(Range { prot, ..range }));
    shared::note_code(prot);
    // SAFETY: the program's own request; the engine lies where natively nothing is mapped, so only a program that looks for it names it.
    if at < start + len { unsafe { raw!(nr_, at, start + len - at, prot, key) } } else { 0 }
}

/// Is there anything in the range that a change of protection must know about?
pub fn concerns(start: u64, len: u64) -> bool {
    !pieces(start, len).is_empty() || shared::candidate_in(start, len).is_some()
}

/// A read-only shared mapping becomes writable: its file is a pool from now on, with all its mappings.
fn promote(thread: &mut Thread, start: u64, len: u64) {
    const O_RDWR_CLOEXEC: u64 = 0o2000002;
    while let Some(found) = shared::candidate_in(start, len) {
        let mut path = found.path.clone();
        path.push(0);
        let fd = sys!(nr::OPEN, path.as_ptr(), O_RDWR_CLOEXEC, 0) as i32;
        let same = Stat::of(fd).is_some_and(|s| FileKey { device: s.device, inode: s.inode } == found.file);
        if fd < 0 || !same {
            refuse!(
                thread,
                "a shared mapping of {} becomes writable, but the file cannot be found any more: name it with --pm",
                alloc::string::String::from_utf8_lossy(&found.path)
            );
        }
        let pool = pools::mapped(thread, fd, true);
        sys!(nr::CLOSE, fd);
        let mappings = shared::take(found.file);
        let Some(pool) = pool else { continue };
        take_over(thread, pool, mappings);
    }
}

/// A file has become a pool: mappings that it had before are mappings of a pool now.
pub fn join(thread: &mut Thread, pool: u32, fd: i32) {
    if let Some(stat) = Stat::of(fd) {
        take_over(thread, pool, shared::take(FileKey { device: stat.device, inode: stat.inode }));
    }
}

fn take_over(thread: &mut Thread, pool: u32, mappings: Vec<Mapping>) {
    for Mapping { start, len, offset, prot, .. } in mappings {
        // SAFETY: a mapping of a pool in the program, which loses rights.
        unsafe { raw!(nr::MPROTECT, start, len, seen(prot)) };
        added_by_copy(thread, Range { start, len, pool, offset, prot, shadow: Shadow::default() });
    }
}

/// `mremap` of PM. Lengths are whole pages.
pub fn remap(thread: &mut Thread, old: u64, old_len: u64, new_len: u64, flags: u64, wanted: u64) -> i64 {
    const MREMAP_DONTUNMAP: u64 = 4;
    let Some(first) = super::range_at(old).and_then(|r| r.cut(old, u64::MAX)) else { return -sys::EFAULT };
    if flags & MREMAP_DONTUNMAP != 0 {
        refuse!(thread, "mremap with MREMAP_DONTUNMAP of a pool mapping at {old:#x}");
    }
    let covered: u64 = pieces(old, old_len).iter().filter(|r| r.pool == first.pool).map(|r| r.len).sum();
    if covered != old_len {
        refuse!(thread, "mremap of {old_len:#x} bytes at {old:#x}, of which only {covered:#x} are mapped to one pool");
    }
    // SAFETY: the program's own mapping, which lies in one pool.
    let result = unsafe { raw!(nr::MREMAP, old, old_len, new_len, flags, wanted) };
    if result < 0 {
        return result;
    }
    let new = result as u64;
    if new == old && new_len <= old_len {
        taken_away(thread, old + new_len, old_len - new_len);
    } else if new == old {
        let offset = first.offset + old_len;
        added_by_copy(thread, Range { start: old + old_len, len: new_len - old_len, offset, ..first });
    } else {
        taken_away(thread, old, old_len);
        taken_away(thread, new, new_len);
        added_by_copy(thread, Range { start: new, len: new_len, ..first });
    }
    result
}
