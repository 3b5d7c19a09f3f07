//! Shared mappings of files that are not pools: they may become pools, and they may hold code that changes through
//! another mapping (JITs whose memory is never writable and executable at once).

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use wire::control::option;

use super::pools::{self, Stat};
use crate::layout;
use crate::lock::{Guard, LockName, Locked};
use crate::ring;
use crate::sys::{PROT_EXEC, PROT_WRITE, nr, raw, sys};

const PAGE: u64 = 4096;

/// The file of a mapping. Pools count as files of device 0, which no file system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKey {
    pub device: u64,
    pub inode: u64,
}

#[derive(Clone, Debug)]
pub struct Mapping {
    pub start: u64,
    pub len: u64,
    pub offset: u64,
    pub prot: u64,
    pub file: FileKey,
    /// Where to find the file again if the mapping is made writable and so a pool (recorder's duty 2); empty: it will
    /// not become one.
    pub path: Vec<u8>,
}

impl Mapping {
    fn end(&self) -> u64 {
        self.start + self.len
    }
}

static TABLE: Locked<Vec<Mapping>> = Locked::new(LockName::SharedMappings, Vec::new());
/// Executable mappings in `TABLE` and among the pools' (never counted down: it only saves work).
static EXECUTABLE: AtomicU32 = AtomicU32::new(0);

/// Holds the table, for fork.
pub fn hold() -> Guard<'static, Vec<Mapping>> {
    TABLE.lock()
}

/// A shared mapping of a file was made.
pub fn mapped(fd: i32, start: u64, len: u64, offset: u64, prot: u64) {
    let Some(stat) = Stat::of(fd).filter(|s| s.is_regular()) else { return };
    let candidate = ring::control().options & option::PM_DEFAULT != 0 && stat.is_named() && is_writable_fd(fd);
    let path = if candidate { pools::path_of(fd) } else { Vec::new() };
    note_code(prot);
    let file = FileKey { device: stat.device, inode: stat.inode };
    TABLE.lock().push(Mapping { start, len, offset, prot, file, path });
}

/// A mapping may hold code.
pub fn note_code(prot: u64) {
    if prot & PROT_EXEC != 0 {
        EXECUTABLE.store(1, Ordering::Relaxed);
    }
}

/// May the file be mapped shared and writable through this descriptor?
pub fn is_writable_fd(fd: i32) -> bool {
    const F_GETFL: u64 = 3;
    const O_ACCMODE: i64 = 3;
    const O_RDWR: i64 = 2;
    sys!(nr::FCNTL, fd, F_GETFL) & O_ACCMODE == O_RDWR
}

/// False: no shared mapping was ever executable.
pub fn may_hold_code() -> bool {
    EXECUTABLE.load(Ordering::Relaxed) != 0
}

pub fn unmapped(start: u64, len: u64) {
    change(start, len, |_| None);
}

/// The program changed the protection of a range.
pub fn protected(start: u64, len: u64, prot: u64) {
    note_code(prot);
    change(start, len, |mapping| Some(Mapping { prot, ..mapping }));
}

fn change(start: u64, len: u64, with: impl Fn(Mapping) -> Option<Mapping>) {
    let end = start.saturating_add(len);
    let mut table = TABLE.lock();
    if !table.iter().any(|m| m.start < end && m.end() > start) {
        return;
    }
    let mut changed = Vec::new();
    for mapping in table.drain(..) {
        let (lo, hi) = (mapping.start.max(start), mapping.end().min(end));
        if lo >= hi {
            changed.push(mapping);
            continue;
        }
        let cut = |lo: u64, hi: u64| Mapping {
            start: lo,
            len: hi - lo,
            offset: mapping.offset + (lo - mapping.start),
            ..mapping.clone()
        };
        if mapping.start < lo {
            changed.push(cut(mapping.start, lo));
        }
        changed.extend(with(cut(lo, hi)));
        if hi < mapping.end() {
            changed.push(cut(hi, mapping.end()));
        }
    }
    *table = changed;
}

/// Does the range touch a mapping that would become a pool if it were writable?
pub fn candidate_in(start: u64, len: u64) -> Option<Mapping> {
    let end = start.saturating_add(len);
    TABLE.lock().iter().find(|m| !m.path.is_empty() && m.start < end && m.end() > start).cloned()
}

/// Takes all mappings of a file out of the table, by ascending address.
pub fn take(file: FileKey) -> Vec<Mapping> {
    let mut table = TABLE.lock();
    let (mut taken, rest): (Vec<_>, Vec<_>) = core::mem::take(&mut *table).into_iter().partition(|m| m.file == file);
    *table = rest;
    taken.sort_by_key(|m| m.start);
    taken
}

/// One way in which a page of a file is seen.
#[derive(Clone, Copy, Debug)]
struct View {
    /// Where the program executes it.
    seen: u64,
    /// Where the program's stores to it go.
    written: u64,
    prot: u64,
}

/// All views of the page that is seen or written at `page`.
fn views(page: u64) -> Vec<View> {
    if !may_hold_code() {
        return Vec::new();
    }
    if let Some(range) = super::range_at(page).or_else(|| super::range_at(layout::alias(page))) {
        let seen = if range.start <= page && page < range.end() { page } else { layout::alias(page) };
        let offset = range.offset + (seen - range.start);
        let view = |r: &super::Range| {
            let seen = r.start + (offset - r.offset);
            View { seen, written: layout::alias(seen), prot: r.prot }
        };
        let all = super::pieces(0, u64::MAX);
        let shows = |r: &&super::Range| r.pool == range.pool && r.offset <= offset && offset < r.offset + r.len;
        return all.iter().filter(shows).map(view).collect();
    }
    let table = TABLE.lock();
    let Some(found) = table.iter().find(|m| m.start <= page && page < m.end()) else { return Vec::new() };
    let (file, offset) = (found.file, found.offset + (page - found.start));
    let shows = |m: &&Mapping| m.file == file && m.offset <= offset && offset < m.offset + m.len;
    let view = |m: &Mapping| {
        let seen = m.start + (offset - m.offset);
        View { seen, written: seen, prot: m.prot }
    };
    table.iter().filter(shows).map(view).collect()
}

/// Code was translated from this page: stores to it through any mapping must fault from now on.
pub fn protect_views(page: u64) {
    for view in views(page) {
        if view.prot & PROT_WRITE != 0 {
            let prot = if view.seen == view.written { view.prot & !PROT_WRITE } else { crate::sys::PROT_READ };
            // SAFETY: a page that shows code of the program; it only loses the right to be written.
            unsafe { raw!(nr::MPROTECT, view.written, PAGE, prot) };
        }
    }
}

/// A store to `page` faulted. If the engine brought that about, the page is writable again, and the addresses where the
/// program may have executed it are returned.
pub fn open_views(page: u64) -> Vec<u64> {
    let views = views(page);
    let Some(own) = views.iter().find(|v| v.written == page && v.prot & PROT_WRITE != 0) else { return Vec::new() };
    let code: Vec<u64> = views.iter().filter(|v| v.prot & PROT_EXEC != 0).map(|v| v.seen).collect();
    if !code.is_empty() {
        let prot = if own.seen == own.written { own.prot } else { crate::sys::PROT_READ | PROT_WRITE };
        // SAFETY: a page that shows code of the program gets back the rights that the program gave it.
        unsafe { raw!(nr::MPROTECT, page, PAGE, prot) };
    }
    code
}
