//! System calls that open, change or synchronise a pool's file.
//!
//! What they wrote is read back from the file itself, so it is right whatever the buffers were.

use std::fs;
use std::os::unix::fs::MetadataExt;

use trace::event::{EventKind, FileEvent, Place, PoolId, PoolOffset};

use super::error::StepError;
use super::kernel::SystemCall;
use super::ptrace::Tid;
use super::session::{Session, Task};
use super::space::{self, file_piece};
use super::{name_calls, pools};

pub fn after(session: &mut Session, task: &mut Task, call: &SystemCall, result: u64) -> Result<(), StepError> {
    let [a0, a1, a2, a3, ..] = call.args;
    match call.number {
        libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_creat => opened(session, task, call, result),
        libc::SYS_write | libc::SYS_writev => written(session, task, call, a0, None, result),
        libc::SYS_pwrite64 => written(session, task, call, a0, Some(a3), result),
        libc::SYS_pwritev => written(session, task, call, a0, Some(a3), result),
        libc::SYS_pwritev2 => written(session, task, call, a0, (a3 != u64::MAX).then_some(a3), result),
        libc::SYS_sendfile => written(session, task, call, a0, None, result),
        libc::SYS_copy_file_range | libc::SYS_splice => written(session, task, call, a2, call.output_offset, result),
        libc::SYS_ftruncate => match pool_of(session, task.tid, a0) {
            Some(pool) => resized(session, task, call.pc, pool),
            None => other_resized(session, task, call, a0),
        },
        libc::SYS_truncate => match pool_at_path(session, task, a0) {
            Some(pool) => resized(session, task, call.pc, pool),
            None => Ok(()),
        },
        libc::SYS_fallocate => allocated(session, task, call, a0, a1 as i32, a2, a3),
        libc::SYS_fsync | libc::SYS_fdatasync => match pool_of(session, task.tid, a0) {
            Some(pool) => {
                let data_only = call.number == libc::SYS_fdatasync;
                session.emit(task, call.pc, EventKind::Fsync { pool, data_only })
            }
            None => match name_calls::file_behind(session, task.tid, a0) {
                Some(file) => {
                    let data_only = call.number == libc::SYS_fdatasync;
                    session.emit(task, call.pc, EventKind::File(FileEvent::Sync { file: Some(file), data_only }))
                }
                None => Ok(()),
            },
        },
        libc::SYS_sync | libc::SYS_syncfs => {
            let whole = call.number == libc::SYS_sync;
            let device = if whole { None } else { pools::file_of(task.tid, a0).map(|key| key.device) };
            for pool in session.pools.on_device(device) {
                session.emit(task, call.pc, EventKind::Fsync { pool, data_only: false })?;
            }
            match session.options.files {
                true => session.emit(task, call.pc, EventKind::File(FileEvent::Sync { file: None, data_only: false })),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn pool_of(session: &Session, tid: Tid, fd: u64) -> Option<PoolId> {
    session.pools.find(pools::file_of(tid, fd)?)
}

fn pool_at_path(session: &Session, task: &Task, path: u64) -> Option<PoolId> {
    let path = super::ptrace::read_text(task.tid, path).ok()?;
    let path = String::from_utf8_lossy(&path).into_owned();
    // An absolute path replaces the whole: both kinds go through the target's own directory.
    let full = std::path::Path::new(&format!("/proc/{}/cwd", task.tid.0)).join(path);
    let info = fs::metadata(full).ok()?;
    session.pools.find(pools::FileKey { device: info.dev(), inode: info.ino() })
}

fn resized(session: &mut Session, task: &mut Task, pc: u64, pool: PoolId) -> Result<(), StepError> {
    match session.pools.new_len(pool) {
        Some(len) => session.emit(task, pc, EventKind::Resize { pool, len }),
        None => Ok(()),
    }
}

/// A new descriptor: with globs it can make its file a pool; `O_TRUNC` can have emptied one.
fn opened(session: &mut Session, task: &mut Task, call: &SystemCall, fd: u64) -> Result<(), StepError> {
    let Some(key) = pools::file_of(task.tid, fd) else { return Ok(()) };
    if let Some(pool) = session.pools.find(key) {
        return resized(session, task, call.pc, pool);
    }
    let wanted = pools::path_of(task.tid, fd).is_some_and(|path| session.pools.wants(&path));
    if wanted {
        let file = pools::open_own(task.tid, fd, key)?;
        session.make_pool(task.thread, &file)?;
    }
    Ok(())
}

/// `len` bytes went to `fd`, at `offset` or else up to the file position where it is now.
fn written(
    session: &mut Session,
    task: &mut Task,
    call: &SystemCall,
    fd: u64,
    offset: Option<u64>,
    len: u64,
) -> Result<(), StepError> {
    let (position, flags) = pools::position_and_flags(task.tid, fd).unwrap_or((0, 0));
    let start = |file_len: u64| match offset {
        // pwrite(2), BUGS: with O_APPEND Linux appends whatever the offset.
        Some(_) if flags & libc::O_APPEND != 0 => file_len.saturating_sub(len),
        Some(offset) => offset,
        None => position.saturating_sub(len),
    };
    let asked = call.number == libc::SYS_pwritev2 && call.args[5] as i32 & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0;
    let is_synchronous = asked || flags & libc::O_DSYNC != 0;
    if let Some(pool) = pool_of(session, task.tid, fd) {
        resized(session, task, call.pc, pool)?;
        let start = start(session.pools.len(pool));
        content_changed(session, task, call.pc, pool, start, len)?;
        if is_synchronous && len > 0 {
            let place = Place { pool, offset: PoolOffset(start) };
            session.emit(task, call.pc, EventKind::Msync { place, len })?;
        }
    } else if let Some(file) = name_calls::file_behind(session, task.tid, fd)
        && len > 0
    {
        let file_len = fs::metadata(format!("/proc/{}/fd/{}", task.tid.0, fd as i32)).map_or(0, |found| found.len());
        name_calls::content_changed(session, task, call, (fd, file), (start(file_len), len))?;
        if is_synchronous {
            session.emit(task, call.pc, EventKind::File(FileEvent::Sync { file: Some(file), data_only: true }))?;
        }
    }
    Ok(())
}

/// The length of a file that is no pool may have changed.
fn other_resized(session: &mut Session, task: &mut Task, call: &SystemCall, fd: u64) -> Result<(), StepError> {
    let Some(file) = name_calls::file_behind(session, task.tid, fd) else { return Ok(()) };
    let len = fs::metadata(format!("/proc/{}/fd/{}", task.tid.0, fd as i32)).map_or(0, |found| found.len());
    if call.length_before == Some(len) {
        return Ok(());
    }
    session.emit(task, call.pc, EventKind::File(FileEvent::Length { file, len }))
}

/// `fallocate` of a file that is no pool.
fn other_allocated(session: &mut Session, task: &mut Task, call: &SystemCall) -> Result<(), StepError> {
    let [fd, mode, offset, len, ..] = call.args;
    other_resized(session, task, call, fd)?;
    let Some(file) = name_calls::file_behind(session, task.tid, fd) else { return Ok(()) };
    let end = fs::metadata(format!("/proc/{}/fd/{}", task.tid.0, fd as i32)).map_or(0, |found| found.len());
    let rest = end.saturating_sub(offset);
    if mode as i32 & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0 && len.min(rest) > 0 {
        let change = FileEvent::Zero { file, offset, len: len.min(rest) };
        session.emit(task, call.pc, EventKind::File(change))?;
    }
    if mode as i32 & (libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE) != 0 {
        name_calls::content_changed(session, task, call, (fd, file), (offset, rest))?;
    }
    Ok(())
}

fn content_changed(
    session: &mut Session,
    task: &mut Task,
    pc: u64,
    pool: PoolId,
    start: u64,
    len: u64,
) -> Result<(), StepError> {
    for piece in space::cut(file_piece(pool, start, len)) {
        let bytes = session.pools.read(pool, piece.place.offset, piece.len);
        session.emit(task, pc, EventKind::FileWrite { place: piece.place, bytes: &bytes })?;
    }
    Ok(())
}

fn allocated(
    session: &mut Session,
    task: &mut Task,
    call: &SystemCall,
    fd: u64,
    mode: i32,
    offset: u64,
    len: u64,
) -> Result<(), StepError> {
    let Some(pool) = pool_of(session, task.tid, fd) else { return other_allocated(session, task, call) };
    resized(session, task, call.pc, pool)?;
    let end = session.pools.len(pool);
    if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0 {
        let len = len.min(end.saturating_sub(offset));
        if len > 0 {
            let place = Place { pool, offset: PoolOffset(offset) };
            session.emit(task, call.pc, EventKind::FileZero { place, len })?;
        }
    }
    if mode & (libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE) != 0 {
        content_changed(session, task, call.pc, pool, offset, end.saturating_sub(offset))?;
    }
    Ok(())
}
