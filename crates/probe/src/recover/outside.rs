//! Changes to files outside the private folders: the next run would see them, so the host is told the path.
//!
//! This is checked before the system call: a call that fails for another reason is reported too, which only makes a result more careful.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use wire::recover::{OUTSIDE_BYTES, flag};

use super::{notes, paths};
use crate::load::user;
use crate::pm::pools::{self, Stat};
use crate::ring::control;
use crate::sys::{nr, raw, sys};
use crate::syscall::dispatch::Call;

const AT_FDCWD: i32 = -100;
const O_PATH_CLOEXEC: u64 = 0o10000000 | 0o2000000;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;

/// Which file a path argument of a call changes, if the call succeeds.
enum Changes {
    /// The one that it leads to, if that is a regular file.
    Content,
    /// The entry of a directory, if there is one.
    Entry,
    /// A new entry, if there is none.
    NewEntry,
}

/// The file that the call changes is outside of the private folders: says so.
pub fn note(call: Call) {
    use Changes::*;
    let args = call.args;
    match call.nr {
        nr::OPEN => opens(AT_FDCWD, args[0], args[1]),
        nr::OPENAT => opens(call.fd(0), args[1], args[2]),
        nr::OPENAT2 => opens(call.fd(0), args[1], user::read::<u64>(args[2]).unwrap_or(0)),
        nr::CREAT => changes(AT_FDCWD, args[0], Content),
        nr::TRUNCATE | nr::CHMOD | nr::CHOWN | nr::UTIME | nr::UTIMES | nr::SETXATTR | nr::REMOVEXATTR => {
            changes(AT_FDCWD, args[0], Content);
        }
        nr::UNLINK | nr::RMDIR | nr::LCHOWN | nr::LSETXATTR | nr::LREMOVEXATTR => changes(AT_FDCWD, args[0], Entry),
        nr::UNLINKAT | nr::FCHMODAT | nr::FCHOWNAT | nr::UTIMENSAT | nr::FUTIMESAT => {
            changes(call.fd(0), args[1], Entry)
        }
        nr::MKDIR | nr::MKNOD => changes(AT_FDCWD, args[0], NewEntry),
        nr::SYMLINK | nr::LINK => changes(AT_FDCWD, args[1], NewEntry),
        nr::MKDIRAT | nr::MKNODAT => changes(call.fd(0), args[1], NewEntry),
        nr::SYMLINKAT => changes(call.fd(1), args[2], NewEntry),
        nr::LINKAT => changes(call.fd(2), args[3], NewEntry),
        nr::RENAME => {
            changes(AT_FDCWD, args[0], Entry);
            changes(AT_FDCWD, args[1], NewEntry);
        }
        nr::RENAMEAT | nr::RENAMEAT2 => {
            changes(call.fd(0), args[1], Entry);
            changes(call.fd(2), args[3], NewEntry);
        }
        _ => {}
    }
}

fn opens(directory: i32, path: u64, flags: u64) {
    const O_ACCMODE: u64 = 3;
    const O_CREAT: u64 = 0o100;
    const O_TRUNC: u64 = 0o1000;
    const TMPFILE: u64 = 0o20000000;
    if flags & TMPFILE != 0 || flags & (O_ACCMODE | O_CREAT | O_TRUNC) == 0 {
        return;
    }
    let Some(path) = user::c_string(path).filter(|path| !path.is_empty()) else { return };
    match existing(directory, &path) {
        Some((stat, real)) if stat.is_regular() && flags & (O_ACCMODE | O_TRUNC) != 0 => tell(&real),
        Some(_) => {}
        None if flags & O_CREAT != 0 => tell_entry(directory, &path),
        None => {}
    }
}

fn changes(directory: i32, path: u64, what: Changes) {
    let Some(path) = user::c_string(path).filter(|path| !path.is_empty()) else { return };
    match what {
        Changes::Content => match existing(directory, &path) {
            Some((stat, real)) if stat.is_regular() => tell(&real),
            Some(_) => {}
            None => tell_entry(directory, &path),
        },
        Changes::Entry if is_there(directory, &path) => tell_entry(directory, &path),
        Changes::NewEntry if !is_there(directory, &path) => tell_entry(directory, &path),
        Changes::Entry | Changes::NewEntry => {}
    }
}

fn terminated(path: &[u8]) -> Vec<u8> {
    path.iter().copied().chain([0]).collect()
}

fn is_there(directory: i32, path: &[u8]) -> bool {
    let (path, mut stat) = (terminated(path), Stat::default());
    // SAFETY: the kernel fills `stat`, which has its layout; the path ends with a zero.
    let got = unsafe { raw!(nr::NEWFSTATAT, directory, path.as_ptr(), &raw mut stat, AT_SYMLINK_NOFOLLOW) };
    got == 0
}

/// The file that a path leads to, and its real path.
fn existing(directory: i32, path: &[u8]) -> Option<(Stat, Vec<u8>)> {
    let path = terminated(path);
    let fd = sys!(nr::OPENAT, directory, path.as_ptr(), O_PATH_CLOEXEC, 0);
    if fd < 0 {
        return None;
    }
    let found = Stat::of(fd as i32).map(|stat| (stat, pools::path_of(fd as i32)));
    sys!(nr::CLOSE, fd);
    found
}

fn tell_entry(directory: i32, path: &[u8]) {
    let base = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let Some(mut place) = paths::place_of(directory, &path[..path.len() - base.len()]) else { return };
    if !place.ends_with(b"/") {
        place.push(b'/');
    }
    place.extend_from_slice(base);
    tell(&place);
}

fn is_private(path: &[u8]) -> bool {
    let recovery = &control().recovery;
    let dirs = recovery.private.iter().take(recovery.private_count as usize).map(|dir| paths::text(*dir));
    // What the kernel makes up is no file that stays.
    let mut all = dirs.chain([&b"/proc"[..]]);
    all.any(|dir| path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest[0] == b'/'))
}

fn tell(path: &[u8]) {
    if is_private(path) {
        return;
    }
    notes::raise(flag::OUTSIDE);
    let recovery = &control().recovery;
    let from = (&raw const recovery.outside).cast::<u8>().cast_mut();
    let used = (recovery.outside_len.load(Ordering::Acquire) as usize).min(OUTSIDE_BYTES);
    // SAFETY: shared memory; what is beyond `outside_len` is not looked at.
    let told = unsafe { core::slice::from_raw_parts(from, used) };
    if told.split(|b| *b == b'\n').any(|line| line == path) || used + path.len() + 1 > OUTSIDE_BYTES {
        return;
    }
    let at = recovery.outside_len.fetch_add(path.len() as u32 + 1, Ordering::AcqRel) as usize;
    if at + path.len() + 1 > OUTSIDE_BYTES {
        return;
    }
    // SAFETY: this part is ours since `fetch_add`.
    unsafe {
        core::ptr::copy_nonoverlapping(path.as_ptr(), from.add(at), path.len());
        from.add(at + path.len()).write(b'\n');
    }
}
