//! System calls that change names, or files that are no pools.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};

use trace::event::{EventKind, FileEvent, FileId};
use wire::record::file;

use super::error::StepError;
use super::kernel::SystemCall;
use super::pools;
use super::ptrace::{self, Tid};
use super::session::{Session, Task};
use crate::file_book::{FileKey, NameChange};

/// Says what is about to happen, if it is of this kind.
pub fn before(session: &mut Session, task: &Task, call: &mut SystemCall) -> Result<(), StepError> {
    if !session.options.files {
        return Ok(());
    }
    if let Some(step) = step_of(session, task.tid, call) {
        let is_write = step.op == file::WRITE;
        session.book.before(&mut session.trace, task.thread, step)?;
        call.changes_names = !is_write;
    }
    Ok(())
}

/// Tells what a call that was announced has changed.
pub fn after(session: &mut Session, task: &mut Task, call: &SystemCall) -> Result<(), StepError> {
    if !call.changes_names {
        return Ok(());
    }
    let changes = session.book.after(&mut session.trace, task.thread);
    for change in changes {
        session.emit(task, call.pc, EventKind::File(change.event()))?;
    }
    Ok(())
}

fn step_of(session: &Session, tid: Tid, call: &SystemCall) -> Option<NameChange> {
    let [a0, a1, a2, a3, a4, _] = call.args;
    let here = |pointer| path_at(tid, None, pointer);
    let at = |directory: u64, pointer| path_at(tid, Some(directory), pointer);
    let behind = |fd| pools::path_of(tid, fd);
    let text = |pointer| Some(String::from_utf8_lossy(&ptrace::read_text(tid, pointer).ok()?).into_owned());
    let one = |op, path: Option<String>| {
        Some(NameChange { op, path: path.filter(|path| recorded(path))?, other: String::new() })
    };
    let two = |op, path: Option<String>, other: Option<String>| {
        let step = NameChange { op, path: path?, other: other? };
        (recorded(&step.path) || recorded(&step.other)).then_some(step)
    };
    let with = |op, path, text: Option<String>| Some(NameChange { other: text?, ..one(op, path)? });
    let opens = |path: Option<String>, flags: u64| {
        let (path, flags) = (path?, flags as i32);
        let makes = flags & libc::O_CREAT != 0;
        if flags & (libc::O_CREAT | libc::O_TRUNC) == 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE {
            return None;
        }
        match fs::metadata(&path) {
            Err(_) => one(file::OPEN, Some(path)).filter(|_| makes),
            Ok(found) => {
                let empties =
                    flags & libc::O_TRUNC != 0 && flags & libc::O_EXCL == 0 && found.is_file() && found.len() > 0;
                one(file::OPEN, Some(path)).filter(|_| empties)
            }
        }
    };
    let written = |fd| {
        let key = key_of(tid, fd)?;
        (!session.streams.contains(&key) && session.pools.find(pools::file_of(tid, fd)?).is_none())
            .then(|| one(file::WRITE, behind(fd)))?
    };
    let is_regular = |mode: u64| matches!(mode as u32 & libc::S_IFMT, 0 | libc::S_IFREG);
    match call.number {
        libc::SYS_open => opens(here(a0), a1),
        libc::SYS_creat => opens(here(a0), (libc::O_CREAT | libc::O_TRUNC) as u64),
        libc::SYS_openat => opens(at(a0, a1), a2),
        libc::SYS_openat2 => opens(at(a0, a1), ptrace::read_u64(tid, a2).ok()?),
        libc::SYS_unlink => one(file::UNLINK, here(a0)),
        libc::SYS_unlinkat if a2 as i32 & libc::AT_REMOVEDIR != 0 => one(file::RMDIR, at(a0, a1)),
        libc::SYS_unlinkat => one(file::UNLINK, at(a0, a1)),
        libc::SYS_rmdir => one(file::RMDIR, here(a0)),
        libc::SYS_rename => two(file::RENAME, here(a0), here(a1)),
        libc::SYS_renameat2 if a4 as u32 & libc::RENAME_EXCHANGE != 0 => two(file::EXCHANGE, at(a0, a1), at(a2, a3)),
        libc::SYS_renameat | libc::SYS_renameat2 => two(file::RENAME, at(a0, a1), at(a2, a3)),
        libc::SYS_link => two(file::LINK, here(a0), here(a1)),
        libc::SYS_linkat if a4 as i32 & libc::AT_EMPTY_PATH != 0 => two(file::LINK, behind(a0), at(a2, a3)),
        libc::SYS_linkat => two(file::LINK, at(a0, a1), at(a2, a3)),
        libc::SYS_mkdir => one(file::MKDIR, here(a0)),
        libc::SYS_mkdirat => one(file::MKDIR, at(a0, a1)),
        libc::SYS_symlink => with(file::SYMLINK, here(a1), text(a0)),
        libc::SYS_symlinkat => with(file::SYMLINK, at(a1, a2), text(a0)),
        libc::SYS_mknod if is_regular(a1) => one(file::OPEN, here(a0)),
        libc::SYS_mknodat if is_regular(a2) => one(file::OPEN, at(a0, a1)),
        libc::SYS_chmod => one(file::MODE, here(a0)),
        libc::SYS_fchmod => one(file::MODE, behind(a0)),
        libc::SYS_fchmodat | libc::SYS_fchmodat2 => one(file::MODE, at(a0, a1)),
        libc::SYS_setxattr | libc::SYS_removexattr => with(file::CHANGE_XATTR, here(a0), text(a1)),
        libc::SYS_lsetxattr | libc::SYS_lremovexattr => with(file::LCHANGE_XATTR, here(a0), text(a1)),
        libc::SYS_fsetxattr | libc::SYS_fremovexattr => with(file::CHANGE_XATTR, behind(a0), text(a1)),
        libc::SYS_truncate => {
            let path = here(a0)?;
            let found = fs::metadata(&path).ok()?;
            let key = pools::FileKey { device: found.dev(), inode: found.ino() };
            session.pools.find(key).is_none().then(|| one(file::TRUNCATE, Some(path)))?
        }
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => written(a0),
        libc::SYS_sendfile | libc::SYS_ftruncate | libc::SYS_fallocate => written(a0),
        libc::SYS_copy_file_range | libc::SYS_splice => written(a2),
        _ => None,
    }
}

/// Not what the kernel makes up.
fn recorded(path: &str) -> bool {
    let system = ["/proc/", "/sys/", "/dev/"].iter().any(|folder| path.starts_with(folder));
    path.starts_with('/') && (!system || path.starts_with("/dev/shm/")) && !path.starts_with("/memfd:")
}

fn path_at(tid: Tid, directory: Option<u64>, pointer: u64) -> Option<String> {
    let path = String::from_utf8_lossy(&ptrace::read_text(tid, pointer).ok()?).into_owned();
    if path.starts_with('/') {
        return Some(path);
    }
    let base = match directory {
        Some(fd) if fd as i32 != libc::AT_FDCWD => pools::path_of(tid, fd)?,
        _ => fs::read_link(format!("/proc/{}/cwd", tid.0)).ok()?.to_string_lossy().into_owned(),
    };
    (!path.is_empty()).then(|| format!("{base}/{path}"))
}

fn key_of(tid: Tid, fd: u64) -> Option<FileKey> {
    let key = pools::file_of(tid, fd)?;
    Some(FileKey { device: key.device, inode: key.inode })
}

/// The number of the file behind a descriptor that is no pool.
pub fn file_behind(session: &Session, tid: Tid, fd: u64) -> Option<FileId> {
    let key = key_of(tid, fd)?;
    (session.options.files && !session.streams.contains(&key)).then(|| session.book.find(key))?
}

/// `len` bytes from `start` of such a file have changed.
pub fn content_changed(
    session: &mut Session,
    task: &mut Task,
    call: &SystemCall,
    (fd, file): (u64, FileId),
    (start, len): (u64, u64),
) -> Result<(), StepError> {
    const PAGE: u64 = 4096;
    let Ok(own) = fs::File::open(format!("/proc/{}/fd/{}", task.tid.0, (fd as u32).cast_signed())) else {
        return Ok(());
    };
    let mut at = start;
    while at < start + len {
        let part = (PAGE - at % PAGE).min(start + len - at);
        let mut bytes = vec![0; part as usize];
        let got = own.read_at(&mut bytes, at).unwrap_or(0);
        bytes.truncate(got);
        let change = FileEvent::Write { file, offset: at, bytes: &bytes, continues: at != start };
        session.emit(task, call.pc, EventKind::File(change))?;
        at += part;
    }
    Ok(())
}
