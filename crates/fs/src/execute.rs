//! Runs operations against a directory and answers each with its result.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::str::FromStr;

use crate::content::{Seed, pattern};
use crate::errno::Errno;
use crate::op::{Fd, File, Offset, Op, Way};
use crate::sys::{self, Result};
use crate::usable::remove_all;

/// How a system call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Done,
    /// So many bytes were written or read.
    Bytes(u64),
    Failed(Errno),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Done => f.write_str("ok"),
            Answer::Bytes(count) => write!(f, "ok {count}"),
            Answer::Failed(errno) => errno.fmt(f),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no answer of a system call")]
pub struct BadAnswer(String);

impl FromStr for Answer {
    type Err = BadAnswer;

    fn from_str(text: &str) -> std::result::Result<Answer, BadAnswer> {
        let text = text.trim();
        let bytes = || text.strip_prefix("ok ")?.parse().ok().map(Answer::Bytes);
        let answer = match text {
            "ok" => Some(Answer::Done),
            _ => bytes().or_else(|| Errno::of_name(text).map(Answer::Failed)),
        };
        answer.ok_or_else(|| BadAnswer(text.to_owned()))
    }
}

/// `O_DIRECT` wants buffers that begin at a multiple of this.
const ALIGNMENT: usize = 4096;

/// A directory that operations are run against, and the descriptors that are open in it.
#[derive(Debug)]
pub struct Executor {
    root: PathBuf,
    open: BTreeMap<Fd, OwnedFd>,
}

impl Executor {
    pub fn new(root: impl Into<PathBuf>) -> Executor {
        Executor { root: root.into(), open: BTreeMap::new() }
    }

    pub fn run(&mut self, op: &Op) -> Answer {
        match self.call(op) {
            Ok(None) => Answer::Done,
            Ok(Some(count)) => Answer::Bytes(count as u64),
            Err(errno) => Answer::Failed(errno),
        }
    }

    /// Nothing must be open when the file system is unmounted.
    pub fn close_all(&mut self) {
        self.open.clear();
    }

    fn path(&self, path: &str) -> Result<CString> {
        sys::c_path(&self.root.join(path))
    }

    fn call(&mut self, op: &Op) -> Result<Option<usize>> {
        match op {
            Op::Creat(path) => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                sys::open(&self.path(path)?, flags, 0o644).map(drop)?;
            }
            Op::Mkdir(path) => sys::mkdir(&self.path(path)?, 0o755)?,
            Op::Rmdir(path) => sys::rmdir(&self.path(path)?)?,
            Op::Unlink(path) => sys::unlink(&self.path(path)?)?,
            Op::Remove(path) => {
                let path = self.path(path)?;
                match sys::unlink(&path) {
                    Err(Errno(libc::EISDIR | libc::EPERM)) => sys::rmdir(&path)?,
                    removed => removed?,
                }
            }
            Op::Link(from, to) => sys::link(&self.path(from)?, &self.path(to)?)?,
            Op::Symlink(target, name) => {
                let target = CString::new(target.as_str()).map_err(|_| Errno(libc::EINVAL))?;
                sys::symlink(&target, &self.path(name)?)?;
            }
            Op::Rename(from, to) => sys::rename(&self.path(from)?, &self.path(to)?)?,
            Op::Open { file, fd, truncate, append } => {
                let truncate = if *truncate { libc::O_TRUNC } else { 0 };
                let append = if *append { libc::O_APPEND } else { 0 };
                let opened = sys::open(&self.path(file)?, libc::O_RDWR | truncate | append, 0)?;
                self.open.insert(*fd, opened);
            }
            Op::Close(fd) => drop(self.open.remove(fd).ok_or(Errno(libc::EBADF))?),
            Op::Write { file, at, len, seed, way } => return self.write(file, *at, *len, *seed, *way).map(Some),
            Op::Read { file, at, len } => {
                let mut buffer = vec![0; *len as usize];
                return self.on(file, libc::O_RDONLY, |fd| sys::pread(fd, &mut buffer, place(fd, *at)?)).map(Some);
            }
            Op::Truncate { file, len } => match file.fd {
                Some(_) => self.on(file, libc::O_RDWR, |fd| sys::ftruncate(fd, *len))?,
                None => sys::truncate(&self.path(&file.path)?, *len)?,
            },
            Op::Fallocate { mode, file, at, len } => {
                self.on(file, libc::O_RDWR, |fd| sys::fallocate(fd, mode.flags(), place(fd, *at)?, *len))?;
            }
            Op::Fsync(file) => self.on(file, libc::O_RDONLY, sys::fsync)?,
            Op::Fdatasync(file) => self.on(file, libc::O_RDONLY, sys::fdatasync)?,
            Op::Sync => {
                let root = File { path: ".".into(), fd: None };
                self.on(&root, libc::O_RDONLY, sys::syncfs)?;
            }
            Op::Setxattr { path, name, value } => {
                sys::setxattr(&self.path(path)?, &attribute(name)?, value.as_bytes())?;
            }
            Op::Removexattr { path, name } => sys::removexattr(&self.path(path)?, &attribute(name)?)?,
            Op::Chmod(path, mode) => sys::chmod(&self.path(path)?, *mode)?,
            Op::Chown(path, user, group) => sys::chown(&self.path(path)?, *user, *group)?,
            Op::Reset => {
                self.close_all();
                remove_all(&self.root).map_err(|(_, errno)| errno)?;
            }
        }
        Ok(None)
    }

    /// With an open descriptor of the file: the one of that number, or a new one for this call alone.
    fn on<T>(&mut self, file: &File, flags: i32, call: impl FnOnce(&OwnedFd) -> Result<T>) -> Result<T> {
        let path = self.path(&file.path)?;
        let Some(number) = file.fd else { return call(&sys::open(&path, flags, 0)?) };
        let opened = match self.open.remove(&number) {
            Some(opened) => opened,
            None => sys::open(&path, libc::O_RDWR, 0)?,
        };
        let result = call(&opened);
        self.open.insert(number, opened);
        result
    }

    fn write(&mut self, file: &File, at: Offset, len: u64, seed: Seed, way: Way) -> Result<usize> {
        let flags = match way {
            Way::Direct => libc::O_RDWR | libc::O_DIRECT | libc::O_SYNC,
            Way::Buffered | Way::Mapped => libc::O_RDWR,
        };
        self.on(file, flags, |fd| {
            let at = place(fd, at)?;
            let bytes = pattern(seed, at, len as usize);
            if way == Way::Mapped {
                let size = sys::fstat(fd)?.st_size as u64;
                // A store behind the last page of a file is a signal, not an error.
                let inside = at.checked_add(len).is_some_and(|end| end <= size);
                return if inside {
                    sys::store_mapped(fd, &bytes, at).map(|()| bytes.len())
                } else {
                    Err(Errno(libc::ENXIO))
                };
            }
            let mut buffer = vec![0; bytes.len() + ALIGNMENT];
            let skip = buffer.as_ptr().align_offset(ALIGNMENT);
            buffer[skip..skip + bytes.len()].copy_from_slice(&bytes);
            sys::pwrite(fd, &buffer[skip..skip + bytes.len()], at)
        })
    }
}

fn attribute(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Errno(libc::EINVAL))
}

fn place(fd: &OwnedFd, at: Offset) -> Result<u64> {
    match at {
        Offset::At(at) => Ok(at),
        Offset::BeforeEnd(back) => Ok((sys::fstat(fd)?.st_size as u64).saturating_sub(back)),
    }
}
