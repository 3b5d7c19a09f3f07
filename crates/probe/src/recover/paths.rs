//! Pools at their own paths with private content: a path that names a pool is replaced by that of its stand-in, a private file.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use wire::control::TextRef;
use wire::recover::{Substitute, flag};

use super::{notes, roots};
use crate::load::user;
use crate::pm::pools::Stat;
use crate::ring::control;
use crate::sys::{nr, raw, sys};
use crate::syscall::dispatch::Call;
use crate::thread::Thread;

const AT_FDCWD: i32 = -100;

/// Where the path arguments of a call are, each with its directory's (none: the current one).
fn arguments(number: u64) -> &'static [(usize, Option<usize>)] {
    const FIRST: &[(usize, Option<usize>)] = &[(0, None)];
    const AT: &[(usize, Option<usize>)] = &[(1, Some(0))];
    const BOTH: &[(usize, Option<usize>)] = &[(0, None), (1, None)];
    const BOTH_AT: &[(usize, Option<usize>)] = &[(1, Some(0)), (3, Some(2))];
    match number {
        nr::OPEN
        | nr::CREAT
        | nr::MKDIR
        | nr::RMDIR
        | nr::CHDIR
        | nr::STAT
        | nr::LSTAT
        | nr::ACCESS
        | nr::UNLINK
        | nr::TRUNCATE
        | nr::CHMOD
        | nr::CHOWN
        | nr::LCHOWN
        | nr::UTIME
        | nr::UTIMES
        | nr::READLINK
        | nr::STATFS
        | nr::MKNOD
        | nr::SETXATTR
        | nr::LSETXATTR
        | nr::GETXATTR
        | nr::LGETXATTR
        | nr::LISTXATTR
        | nr::LLISTXATTR
        | nr::REMOVEXATTR
        | nr::LREMOVEXATTR => FIRST,
        nr::OPENAT
        | nr::OPENAT2
        | nr::NEWFSTATAT
        | nr::STATX
        | nr::FACCESSAT
        | nr::FACCESSAT2
        | nr::UNLINKAT
        | nr::MKDIRAT
        | nr::FCHMODAT
        | nr::FCHMODAT2
        | nr::FCHOWNAT
        | nr::UTIMENSAT
        | nr::FUTIMESAT
        | nr::READLINKAT
        | nr::MKNODAT
        | nr::NAME_TO_HANDLE_AT => AT,
        nr::RENAME | nr::LINK => BOTH,
        nr::RENAMEAT | nr::RENAMEAT2 | nr::LINKAT => BOTH_AT,
        nr::SYMLINK => &[(1, None)],
        nr::SYMLINKAT => &[(2, Some(1))],
        _ => &[],
    }
}

/// Does the call change which file a path names?
fn moves_files(number: u64) -> bool {
    matches!(
        number,
        nr::UNLINK
            | nr::UNLINKAT
            | nr::RENAME
            | nr::RENAMEAT
            | nr::RENAMEAT2
            | nr::LINK
            | nr::LINKAT
            | nr::SYMLINK
            | nr::SYMLINKAT
    )
}

pub fn text(at: TextRef) -> &'static [u8] {
    control().text.get(at.start as usize..at.start as usize + at.len as usize).unwrap_or_default()
}

fn substitutes() -> &'static [Substitute] {
    let recovery = &control().recovery;
    recovery.substitutes.get(..recovery.substitute_count as usize).unwrap_or_default()
}

/// The path of a pool's stand-in, as a C string.
pub fn private(pool: u32) -> Option<Vec<u8>> {
    let mut path = text(substitutes().get(pool as usize)?.private).to_vec();
    path.push(0);
    Some(path)
}

/// The pool whose stand-in lies at this path.
pub fn pool_at(path: &[u8]) -> Option<usize> {
    let pools = control().pool_count.load(Ordering::Relaxed) as usize;
    substitutes().iter().take(pools).position(|s| text(s.private) == path)
}

/// The call with the paths of pools replaced, if it names any. The strings live as long as the answer.
pub fn replaced(thread: &mut Thread, mut call: Call) -> Option<(Call, Vec<Vec<u8>>)> {
    let mut strings = Vec::new();
    for &(at, directory) in arguments(call.nr) {
        let directory = directory.map_or(AT_FDCWD, |d| call.fd(d));
        let Some(path) = user::c_string(call.args[at]) else { continue };
        let in_root = roots::private(directory, &path);
        let in_slot = || named(directory, &path).map(|substitute| text(substitute.private).to_vec());
        let Some(mut private) = in_root.or_else(in_slot) else { continue };
        private.push(0);
        call.args[at] = private.as_ptr() as u64;
        strings.push(private);
    }
    if strings.is_empty() {
        return None;
    }
    if moves_files(call.nr) && strings.len() < arguments(call.nr).len() {
        // The stand-in lies elsewhere: what the kernel would answer is not what the program would see.
        crate::refuse!(thread, "recovery renames or links a pool to another name, which needs native mode");
    }
    Some((call, strings))
}

/// Notes what a call with replaced paths is about to change. After the fork: the notes are the run's.
pub fn note_changes(call: Call, strings: &[Vec<u8>]) {
    for private in strings.iter().filter_map(|string| string.strip_suffix(b"\0")) {
        let is_stand_in = substitutes().iter().any(|substitute| text(substitute.private) == private);
        if is_stand_in && moves_files(call.nr) {
            notes::raise(flag::FILES_CHANGED | flag::INCOMPLETE);
        } else if !is_stand_in {
            roots::note_change(call, private);
        }
    }
}

/// The pool that a path names: by the file that is there, or by name if there is none.
fn named(directory: i32, path: &[u8]) -> Option<&'static Substitute> {
    if path.is_empty() {
        return None;
    }
    let mut stat = Stat::default();
    let mut string = path.to_vec();
    string.push(0);
    // SAFETY: the kernel fills `stat`, which has its layout; the path ends with a zero.
    if unsafe { raw!(nr::NEWFSTATAT, directory, string.as_ptr(), &raw mut stat, 0) } == 0 {
        let same = |s: &&Substitute| s.inode != 0 && s.inode == stat.inode && s.device == stat.device;
        let inside = |s: &&Substitute| {
            let inode = s.inside_inode.load(Ordering::Relaxed);
            inode != 0 && inode == stat.inode && s.inside_device.load(Ordering::Relaxed) == stat.device
        };
        if let Some(found) = substitutes().iter().find(|s| same(s) || inside(s)) {
            return Some(found);
        }
    }
    let base = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let candidates = || substitutes().iter().filter(|s| text(s.path).rsplit(|b| *b == b'/').next() == Some(base));
    candidates().next()?;
    let place = place_of(directory, &path[..path.len() - base.len()])?;
    candidates().find(|s| text(s.path).strip_suffix(base).is_some_and(|dir| trimmed(dir) == trimmed(&place)))
}

fn trimmed(directory: &[u8]) -> &[u8] {
    directory.strip_suffix(b"/").unwrap_or(directory)
}

/// The absolute path of a directory, without links.
pub fn place_of(directory: i32, path: &[u8]) -> Option<Vec<u8>> {
    const O_PATH_DIRECTORY_CLOEXEC: u64 = 0o10000000 | 0o200000 | 0o2000000;
    let mut string = if path.is_empty() { b".".to_vec() } else { path.to_vec() };
    string.push(0);
    let fd = sys!(nr::OPENAT, directory, string.as_ptr(), O_PATH_DIRECTORY_CLOEXEC, 0);
    if fd < 0 {
        return None;
    }
    let place = crate::pm::path_of(fd as i32);
    sys!(nr::CLOSE, fd);
    Some(place)
}
