//! System calls that change or synchronise mappings.

use trace::event::{EventKind, Place, PoolOffset};

use super::error::StepError;
use super::kernel::SystemCall;
use super::pools::{self, SharedFile};
use super::session::{Session, Task};
use super::space::{Mapping, PAGE, Piece};

fn pages(len: u64) -> u64 {
    len.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// Announces that a range is no longer mapped, and forgets it.
fn take_away(session: &mut Session, task: &mut Task, pc: u64, start: u64, len: u64) -> Result<(), StepError> {
    for Piece { address, place, len } in session.pieces(task, start, len) {
        session.emit(task, pc, EventKind::Unmap { place, len, address })?;
    }
    task.space.borrow_mut().remove(start, start.saturating_add(len));
    Ok(())
}

/// Adds a mapping and announces it if its file is a pool.
fn add(session: &mut Session, task: &mut Task, pc: u64, mapping: Mapping) -> Result<(), StepError> {
    let (address, len) = (mapping.start, mapping.end - mapping.start);
    let offset = PoolOffset(mapping.offset);
    let pool = session.pools.find(mapping.file.key);
    task.space.borrow_mut().insert(mapping);
    if let Some(pool) = pool {
        session.emit(task, pc, EventKind::Map { place: Place { pool, offset }, len, address })?;
    }
    Ok(())
}

/// Makes a file that is mapped shared a pool, if the rules say so.
fn consider(session: &mut Session, task: &Task, file: &SharedFile, writable: bool) -> Result<(), StepError> {
    let wanted = if session.pools.has_globs() { session.pools.wants(&file.path) } else { writable && file.is_named() };
    if wanted {
        session.make_pool(task.thread, file)?;
    }
    Ok(())
}

pub fn mmap(session: &mut Session, task: &mut Task, call: &SystemCall, address: u64) -> Result<(), StepError> {
    let [_, len, protection, flags, fd, offset] = call.args;
    let len = pages(len);
    task.space.borrow_mut().code.forget();
    let shared = matches!(flags as i32 & libc::MAP_TYPE, libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE);
    let anonymous = flags as i32 & libc::MAP_ANONYMOUS != 0;
    let key = if shared && !anonymous { pools::file_of(task.tid, fd) } else { None };
    take_away(session, task, call.pc, address, len)?;
    let mut becomes_pool = false;
    let mapping = match key {
        Some(key) => {
            let file = pools::open_own(task.tid, fd, key)?;
            let known = session.pools.find(key).is_some();
            consider(session, task, &file, protection as i32 & libc::PROT_WRITE != 0)?;
            becomes_pool = !known && session.pools.find(key).is_some();
            Some(Mapping { start: address, end: address + len, offset, file })
        }
        None => None,
    };
    if let Some(mapping) = mapping.as_ref().filter(|_| becomes_pool) {
        announce_all(session, task, call.pc, &mapping.file)?;
    }
    mapping.map_or(Ok(()), |mapping| add(session, task, call.pc, mapping))
}

pub fn munmap(session: &mut Session, task: &mut Task, call: &SystemCall) -> Result<(), StepError> {
    task.space.borrow_mut().code.forget();
    take_away(session, task, call.pc, call.args[0], pages(call.args[1]))
}

pub fn mremap(session: &mut Session, task: &mut Task, call: &SystemCall, new: u64) -> Result<(), StepError> {
    let [old, old_len, new_len, flags, ..] = call.args;
    let (old_len, new_len) = (pages(old_len), pages(new_len));
    task.space.borrow_mut().code.forget();
    let moved = task.space.borrow().mapping_at(old).cloned();
    let at_new = moved.map(|mapping| {
        let offset = mapping.offset + (old - mapping.start);
        Mapping { start: new, end: new + new_len, offset, file: mapping.file }
    });
    if new == old && new_len <= old_len {
        return take_away(session, task, call.pc, old + new_len, old_len - new_len);
    }
    if new == old {
        let grown = at_new.map(|mapping| Mapping { start: new + old_len, offset: mapping.offset + old_len, ..mapping });
        return grown.map_or(Ok(()), |mapping| add(session, task, call.pc, mapping));
    }
    // A length of 0 duplicates a shared mapping, MREMAP_DONTUNMAP leaves the old range mapped (but empty).
    if flags as i32 & libc::MREMAP_DONTUNMAP == 0 {
        take_away(session, task, call.pc, old, old_len)?;
    }
    take_away(session, task, call.pc, new, new_len)?;
    at_new.map_or(Ok(()), |mapping| add(session, task, call.pc, mapping))
}

/// A read-only shared mapping that becomes writable can make its file a pool.
pub fn mprotect(session: &mut Session, task: &mut Task, call: &SystemCall) -> Result<(), StepError> {
    let [start, len, protection, ..] = call.args;
    task.space.borrow_mut().code.forget();
    if protection as i32 & libc::PROT_WRITE == 0 {
        return Ok(());
    }
    let changed: Vec<Mapping> = task.space.borrow().mappings_in(start, start + pages(len)).cloned().collect();
    for mapping in changed {
        if session.pools.find(mapping.file.key).is_some() {
            continue;
        }
        consider(session, task, &mapping.file, true)?;
        if session.pools.find(mapping.file.key).is_some() {
            announce_all(session, task, call.pc, &mapping.file)?;
        }
    }
    Ok(())
}

/// Announces the mappings that a file had before it became a pool.
fn announce_all(session: &mut Session, task: &mut Task, pc: u64, file: &SharedFile) -> Result<(), StepError> {
    let Some(pool) = session.pools.find(file.key) else { return Ok(()) };
    let mappings: Vec<Mapping> = task.space.borrow().mappings_in(0, u64::MAX).cloned().collect();
    for mapping in mappings.into_iter().filter(|mapping| mapping.file.key == file.key) {
        let place = Place { pool, offset: PoolOffset(mapping.offset) };
        let (address, len) = (mapping.start, mapping.end - mapping.start);
        session.emit(task, pc, EventKind::Map { place, len, address })?;
    }
    Ok(())
}

/// `MADV_REMOVE` punches a hole into the file behind a shared mapping.
pub fn madvise(session: &mut Session, task: &mut Task, call: &SystemCall) -> Result<(), StepError> {
    let [start, len, advice, ..] = call.args;
    if advice as i32 != libc::MADV_REMOVE {
        return Ok(());
    }
    for piece in session.pieces(task, start, pages(len)) {
        session.emit(task, call.pc, EventKind::FileZero { place: piece.place, len: piece.len })?;
    }
    Ok(())
}

pub fn msync(session: &mut Session, task: &mut Task, call: &SystemCall) -> Result<(), StepError> {
    let [start, len, flags, ..] = call.args;
    if flags as i32 & libc::MS_SYNC == 0 {
        return Ok(());
    }
    for piece in session.pieces(task, start, len) {
        session.emit(task, call.pc, EventKind::Msync { place: piece.place, len: piece.len })?;
    }
    Ok(())
}
