//! Checks that a recovered tree is usable: every file can grow, and is zero behind its old end; a file can be created in every
//! directory; then everything can be removed, and then a file can be created again. Destroys the tree.
//!
//! This is rule 5 of "What must hold" in docs/file-systems.md. The bytes behind the end of a file show only when it grows: an interrupted
//! truncation must not leave old bytes there.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::content::{Seed, pattern};
use crate::errno::Errno;
use crate::sys::{self, Result};
use crate::walk::directories;

/// No workload uses this name.
const PROBE: &str = "fencepost-usable";
const BYTES: usize = 100;
/// More than a block of any file system, so that blocks that are still there show.
const GROWTH: usize = 4096;

/// What cannot be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    pub action: Action,
    /// Below the root.
    pub path: String,
    pub errno: Errno,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    List,
    /// Of a file by some bytes, with ftruncate.
    Extend,
    /// What lies behind the old end of a file that was made longer is not zero.
    ZeroBehind,
    Create,
    Write,
    ReadBack,
    Remove,
    /// After everything was removed.
    CreateAgain,
}

impl Action {
    const ALL: [(Action, &str); 8] = [
        (Action::List, "list"),
        (Action::Extend, "extend"),
        (Action::ZeroBehind, "zero-behind"),
        (Action::Create, "create"),
        (Action::Write, "write"),
        (Action::ReadBack, "read-back"),
        (Action::Remove, "remove"),
        (Action::CreateAgain, "create-again"),
    ];

    fn name(self) -> &'static str {
        Action::ALL.iter().find(|(action, _)| *action == self).map_or("?", |(_, name)| name)
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.action.name(), self.errno, self.path)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not say what cannot be done")]
pub struct BadUnusable(String);

impl FromStr for Unusable {
    type Err = BadUnusable;

    fn from_str(text: &str) -> std::result::Result<Unusable, BadUnusable> {
        let bad = || BadUnusable(text.to_owned());
        let (name, rest) = text.split_once(' ').ok_or_else(bad)?;
        let (errno, path) = rest.split_once(' ').ok_or_else(bad)?;
        let action = Action::ALL.iter().find(|(_, known)| *known == name).ok_or_else(bad)?.0;
        Ok(Unusable { action, path: path.to_owned(), errno: Errno::of_name(errno).ok_or_else(bad)? })
    }
}

/// Must files be zero behind their old ends when they grow?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    #[default]
    Zero,
    /// The file system does not even promise that without a crash.
    Anything,
}

impl Growth {
    /// The line that asks an executor to try whether a tree is usable.
    pub fn line(self) -> &'static str {
        match self {
            Growth::Zero => "usable",
            Growth::Anything => "usable-without-growth",
        }
    }

    pub fn of_line(line: &str) -> Option<Growth> {
        [Growth::Zero, Growth::Anything].into_iter().find(|growth| growth.line() == line)
    }
}

/// Tries all of it.
pub fn usable(root: &Path) -> std::result::Result<(), Unusable> {
    usable_with(root, Growth::Zero)
}

/// The same, with growth as the file system promises it.
pub fn usable_with(root: &Path, growth: Growth) -> std::result::Result<(), Unusable> {
    let shown = |path: &Path| {
        let below = path.strip_prefix(root).unwrap_or(path).display().to_string();
        if below.is_empty() { ".".to_owned() } else { below }
    };
    let failed = |action, path: &Path, errno| Unusable { action, path: shown(path), errno };
    let dirs = directories(root).map_err(|errno| failed(Action::List, root, errno))?;
    for dir in dirs.iter().filter(|_| growth == Growth::Zero) {
        for name in sys::names(dir).map_err(|errno| failed(Action::List, dir, errno))? {
            let path = dir.join(std::ffi::OsStr::from_bytes(&name));
            match grow(&path) {
                Ok(()) | Err((_, Errno(libc::ENOSPC | libc::EFBIG))) => {}
                Err((action, errno)) => return Err(failed(action, &path, errno)),
            }
        }
    }
    for dir in dirs {
        let file = dir.join(PROBE);
        match make(&file) {
            Ok(()) => {}
            // A file system may be full; it is no harm then to have no more room.
            Err((_, Errno(libc::ENOSPC))) => {}
            Err((action, errno)) => return Err(failed(action, &dir, errno)),
        }
    }
    remove_all(root).map_err(|(path, errno)| failed(Action::Remove, &path, errno))?;
    // Nothing is left that could take room.
    let file = root.join(PROBE);
    make(&file).map_err(|(_, errno)| failed(Action::CreateAgain, root, errno))?;
    sys::c_path(&file).and_then(|path| sys::unlink(&path)).map_err(|errno| failed(Action::Remove, &file, errno))
}

/// A regular file by [`GROWTH`] bytes, which must be zero.
fn grow(path: &Path) -> std::result::Result<(), (Action, Errno)> {
    let failed = |errno| (Action::Extend, errno);
    let c_path = sys::c_path(path).map_err(failed)?;
    let stat = sys::lstat(&c_path).map_err(failed)?;
    if stat.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Ok(());
    }
    let size = stat.st_size as u64;
    // By its name: a file may not be ours to open for writing, but it can be made longer by root.
    sys::truncate(&c_path, size + GROWTH as u64).map_err(failed)?;
    let fd = sys::open(&c_path, libc::O_RDONLY, 0).map_err(failed)?;
    let mut bytes = vec![0xff; GROWTH];
    let mut at = 0;
    while at < GROWTH {
        match sys::pread(&fd, &mut bytes[at..], size + at as u64).map_err(failed)? {
            0 => return Err((Action::ZeroBehind, Errno(libc::EIO))),
            count => at += count,
        }
    }
    if bytes.iter().all(|&byte| byte == 0) { Ok(()) } else { Err((Action::ZeroBehind, Errno(libc::EIO))) }
}

fn make(file: &Path) -> std::result::Result<(), (Action, Errno)> {
    let path = sys::c_path(file).map_err(|errno| (Action::Create, errno))?;
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
    let fd = sys::open(&path, flags, 0o600).map_err(|errno| (Action::Create, errno))?;
    let bytes = pattern(Seed(1), 0, BYTES);
    match sys::pwrite(&fd, &bytes, 0).map_err(|errno| (Action::Write, errno))? {
        BYTES => {}
        _ => return Err((Action::Write, Errno(libc::ENOSPC))),
    }
    let mut back = vec![0; BYTES + 1];
    let count = sys::pread(&fd, &mut back, 0).map_err(|errno| (Action::ReadBack, errno))?;
    if back[..count] == bytes { Ok(()) } else { Err((Action::ReadBack, Errno(libc::EIO))) }
}

/// Removes everything below `root`; what could not be removed, and why.
pub fn remove_all(root: &Path) -> std::result::Result<(), (PathBuf, Errno)> {
    for name in sys::names(root).map_err(|errno| (root.to_owned(), errno))? {
        let path = root.join(std::ffi::OsStr::from_bytes(&name));
        let failed = |errno| (path.clone(), errno);
        let c_path = sys::c_path(&path).map_err(failed)?;
        if is_dir(&c_path).map_err(failed)? {
            remove_all(&path)?;
            sys::rmdir(&c_path).map_err(failed)?;
        } else {
            sys::unlink(&c_path).map_err(failed)?;
        }
    }
    Ok(())
}

fn is_dir(path: &std::ffi::CStr) -> Result<bool> {
    Ok(sys::lstat(path)?.st_mode & libc::S_IFMT == libc::S_IFDIR)
}
