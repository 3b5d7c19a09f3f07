//! Files beside the pools as a crash left them: paths into the target's folders lead to private ones.
//!
//! A folder of marks has the names that the recording reported (see `wire::recover::Recovery::roots`). These names, and names that do not
//! exist at all, are looked up and created in the private folder; every other name is the real one.

use alloc::format;
use alloc::vec::Vec;

use wire::control::TextRef;
use wire::recover::{Substitute, flag, name_hash};

use super::notes;
use crate::pm::pools::{self, Stat};
use crate::ring::control;
use crate::sys::{nr, raw, sys};
use crate::syscall::dispatch::Call;
use crate::thread::Thread;

const AT_FDCWD: i32 = -100;

fn text(at: TextRef) -> &'static [u8] {
    control().text.get(at.start as usize..at.start as usize + at.len as usize).unwrap_or_default()
}

fn roots() -> &'static [Substitute] {
    let recovery = &control().recovery;
    recovery.roots.get(..recovery.root_count as usize).unwrap_or_default()
}

/// What follows a folder in a path; empty: the folder itself.
fn inside<'p>(path: &'p [u8], folder: &[u8]) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(folder)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(b"/") }
}

/// The private path of what a path names, if it is to be used instead.
pub fn private(directory: i32, path: &[u8]) -> Option<Vec<u8>> {
    if roots().is_empty() || path.is_empty() {
        return None;
    }
    let absolute = public(normal(directory, path));
    find(&absolute).or_else(|| find(&resolved(&absolute)?)).flatten()
}

/// None: in no root. Some(None): the real one.
fn find(absolute: &[u8]) -> Option<Option<Vec<u8>>> {
    let (root, name) = roots().iter().find_map(|root| Some((root, inside(absolute, text(root.path))?)))?;
    if name.is_empty() {
        return Some(None);
    }
    let mut private = text(root.private).to_vec();
    private.push(b'/');
    private.extend_from_slice(name);
    if is_recorded(root, name) || exists(&private) {
        return Some(Some(private));
    }
    if exists(absolute) {
        return Some(None);
    }
    make_folders(root, name);
    Some(Some(private))
}

/// Is the name, or a folder that it lies in, one that the recording told of?
fn is_recorded(root: &Substitute, name: &[u8]) -> bool {
    let marked = |len: usize| {
        let mut mark = text(root.private).to_vec();
        mark.extend_from_slice(format!(".names/{:016x}", name_hash(&name[..len])).as_bytes());
        exists(&mark)
    };
    let folders = (0..name.len()).filter(|at| name[*at] == b'/');
    marked(name.len()) || folders.into_iter().any(marked)
}

/// Something new in a real folder lies in a private one of the same name.
fn make_folders(root: &Substitute, name: &[u8]) {
    for at in (0..name.len()).filter(|at| name[*at] == b'/') {
        let mut real = text(root.path).to_vec();
        real.push(b'/');
        real.extend_from_slice(&name[..at]);
        if !exists(&real) {
            return;
        }
        let mut private = text(root.private).to_vec();
        private.push(b'/');
        private.extend_from_slice(&name[..at]);
        private.push(0);
        sys!(nr::MKDIR, private.as_ptr(), 0o755);
    }
}

fn stat(path: &[u8]) -> Option<Stat> {
    let mut string = path.to_vec();
    string.push(0);
    let mut stat = Stat::default();
    // SAFETY: the kernel fills `stat`, which has its layout; the path ends with a zero.
    (unsafe { raw!(nr::LSTAT, string.as_ptr(), &raw mut stat) } == 0).then_some(stat)
}

fn exists(path: &[u8]) -> bool {
    stat(path).is_some()
}

/// The absolute path, without `.`, `..` and empty parts.
fn normal(directory: i32, path: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    if !path.starts_with(b"/") {
        whole = if directory == AT_FDCWD { current_directory() } else { pools::path_of(directory) };
        whole.push(b'/');
    }
    whole.extend_from_slice(path);
    let mut normal = Vec::new();
    for part in whole.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                let end = normal.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                normal.truncate(end);
            }
            part => {
                normal.push(b'/');
                normal.extend_from_slice(part);
            }
        }
    }
    normal
}

fn current_directory() -> Vec<u8> {
    let mut path = alloc::vec![0u8; 4096];
    // SAFETY: the kernel writes at most `path.len()` bytes into `path`.
    let got = unsafe { raw!(nr::GETCWD, path.as_mut_ptr(), path.len()) };
    path.truncate((got - 1).max(0) as usize);
    path
}

/// A path inside of a private folder as the program would name it.
fn public(path: Vec<u8>) -> Vec<u8> {
    for root in roots() {
        if let Some(name) = inside(&path, text(root.private)) {
            let mut public = text(root.path).to_vec();
            if !name.is_empty() {
                public.push(b'/');
                public.extend_from_slice(name);
            }
            return public;
        }
    }
    path
}

/// The path with the links in its folder followed.
fn resolved(absolute: &[u8]) -> Option<Vec<u8>> {
    let slash = absolute.iter().rposition(|byte| *byte == b'/')?;
    let mut folder = super::paths::place_of(AT_FDCWD, &absolute[..=slash])?;
    folder.extend_from_slice(&absolute[slash..]);
    Some(folder)
}

/// Notes that a call changes what lies under a private path.
pub fn note_change(call: Call, private: &[u8]) {
    const O_ACCMODE: u64 = 3;
    const O_CREAT: u64 = 0o100;
    const O_TRUNC: u64 = 0o1000;
    let flags = match call.nr {
        nr::OPEN => call.args[1],
        nr::OPENAT => call.args[2],
        nr::OPENAT2 => crate::load::user::read::<u64>(call.args[2]).unwrap_or(O_CREAT),
        nr::STAT
        | nr::LSTAT
        | nr::ACCESS
        | nr::READLINK
        | nr::STATFS
        | nr::GETXATTR
        | nr::LGETXATTR
        | nr::LISTXATTR
        | nr::LLISTXATTR
        | nr::NEWFSTATAT
        | nr::STATX
        | nr::FACCESSAT
        | nr::FACCESSAT2
        | nr::READLINKAT
        | nr::CHDIR
        | nr::NAME_TO_HANDLE_AT => return,
        _ => O_TRUNC,
    };
    if flags & (O_ACCMODE | O_CREAT | O_TRUNC) == 0 {
        return;
    }
    let is_open = matches!(call.nr, nr::OPEN | nr::OPENAT | nr::OPENAT2);
    let there = stat(private);
    if there.is_none() && is_open && flags & O_CREAT == 0 {
        // There is nothing that it could change.
        return;
    }
    let is_pool = there.is_some_and(|stat| pools::find(stat.identity()).is_some());
    if !is_pool || flags & O_TRUNC != 0 {
        notes::raise(flag::TREE_CHANGED);
    }
}

/// Are there no folders whose files the recording tells of?
pub fn none() -> bool {
    roots().is_empty()
}

/// A root and what follows it in the path of a folder.
fn root_of(folder: &[u8]) -> Option<(&'static Substitute, &[u8])> {
    roots().iter().find_map(|root| Some((root, inside(folder, text(root.path))?)))
}

/// Is this a root, or a folder in one?
pub fn is_in_root(folder: &[u8]) -> bool {
    root_of(folder).is_some()
}

/// Where the private files of a folder lie.
pub fn private_folder(folder: &[u8]) -> Option<Vec<u8>> {
    let (root, name) = root_of(folder)?;
    let mut private = text(root.private).to_vec();
    private.push(b'/');
    private.extend_from_slice(name);
    Some(private)
}

/// Does the recording tell of this name in a folder?
pub fn is_recorded_in(folder: &[u8], name: &[u8]) -> bool {
    let Some((root, within)) = root_of(folder) else { return false };
    let mut whole = within.to_vec();
    if !whole.is_empty() {
        whole.push(b'/');
    }
    whole.extend_from_slice(name);
    is_recorded(root, &whole)
}

/// The old form of a listing, which no C library uses any more, would show what is there now, not what the crash left.
pub fn listing(thread: &mut Thread, call: Call) {
    if call.nr == nr::GETDENTS && is_in_root(&pools::path_of(call.fd(0))) {
        crate::refuse!(
            thread,
            "recovery lists a folder in which the workload changed files by `getdents`, which needs native mode"
        );
    }
}
