//! One system call per line: the operations of a workload.
//!
//! ```text
//!   creat A/foo                         open A/foo fd=2 [trunc] [append]     close fd=2
//!   mkdir A                             write foo 5 1024 seed=3 [fd=2]       read foo 0 100 [fd=2]
//!   link A/foo bar                      dwrite foo end 4096 seed=4           O_DIRECT | O_SYNC
//!   symlink target name                 mmap foo 0 64 seed=5                 map, store, msync
//!   rename A/foo bar                    fallocate keep-size foo end-1024 2048 [fd=2]
//!   unlink foo, rmdir A, remove foo     truncate foo 256 [fd=2]
//!   chmod foo 600, chown foo 1 1        setxattr foo user.a value, removexattr foo user.a
//!   fsync foo [fd=2], fdatasync foo     sync, reset                          reset removes everything
//! ```
//! Paths are relative to the root of the file system under test and have no spaces; `end` is the size of the file. A
//! descriptor (`fd=N`) stays open until `close`; its first use opens it if necessary.

use std::fmt;

use crate::content::Seed;

/// A path below the root of the file system under test.
pub type Path = String;

/// A descriptor's number in the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(pub u8);

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Offset {
    At(u64),
    /// So many bytes before the end.
    BeforeEnd(u64),
}

/// A file, by its name or by a descriptor that is open on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct File {
    pub path: Path,
    pub fd: Option<Fd>,
}

/// How the bytes of a write get into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// `pwrite`.
    Buffered,
    /// `pwrite` through `O_DIRECT | O_SYNC`.
    Direct,
    /// Stores into a shared mapping, then `msync`.
    Mapped,
}

/// `mode` of `fallocate(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Allocate {
    Extend,
    KeepSize,
    PunchHole,
    ZeroRange,
    ZeroKeepSize,
    CollapseRange,
    InsertRange,
}

impl Allocate {
    pub const ALL: [(Allocate, &str, i32); 7] = [
        (Allocate::Extend, "extend", 0),
        (Allocate::KeepSize, "keep-size", libc::FALLOC_FL_KEEP_SIZE),
        (Allocate::PunchHole, "punch-hole", libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE),
        (Allocate::ZeroRange, "zero-range", libc::FALLOC_FL_ZERO_RANGE),
        (Allocate::ZeroKeepSize, "zero-keep-size", libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE),
        (Allocate::CollapseRange, "collapse-range", libc::FALLOC_FL_COLLAPSE_RANGE),
        (Allocate::InsertRange, "insert-range", libc::FALLOC_FL_INSERT_RANGE),
    ];

    pub fn name(self) -> &'static str {
        Allocate::ALL.iter().find(|(mode, ..)| *mode == self).map_or("?", |(_, name, _)| name)
    }

    pub fn flags(self) -> i32 {
        Allocate::ALL.iter().find(|(mode, ..)| *mode == self).map_or(0, |(.., flags)| *flags)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Creat(Path),
    Mkdir(Path),
    Rmdir(Path),
    Unlink(Path),
    /// `remove(3)`: of a file or a directory.
    Remove(Path),
    Link(Path, Path),
    /// What it says, and its name.
    Symlink(Path, Path),
    Rename(Path, Path),
    Open {
        file: Path,
        fd: Fd,
        truncate: bool,
        append: bool,
    },
    Close(Fd),
    Write {
        file: File,
        at: Offset,
        len: u64,
        seed: Seed,
        way: Way,
    },
    Read {
        file: File,
        at: Offset,
        len: u64,
    },
    Truncate {
        file: File,
        len: u64,
    },
    Fallocate {
        mode: Allocate,
        file: File,
        at: Offset,
        len: u64,
    },
    Fsync(File),
    Fdatasync(File),
    Sync,
    Setxattr {
        path: Path,
        name: String,
        value: String,
    },
    Removexattr {
        path: Path,
        name: String,
    },
    Chmod(Path, u32),
    Chown(Path, u32, u32),
    /// Closes all descriptors and removes everything: the next workload starts with an empty tree.
    Reset,
}

impl Op {
    /// Its first word.
    pub fn kind(&self) -> &'static str {
        match self {
            Op::Creat(_) => "creat",
            Op::Mkdir(_) => "mkdir",
            Op::Rmdir(_) => "rmdir",
            Op::Unlink(_) => "unlink",
            Op::Remove(_) => "remove",
            Op::Link(..) => "link",
            Op::Symlink(..) => "symlink",
            Op::Rename(..) => "rename",
            Op::Open { .. } => "open",
            Op::Close(_) => "close",
            Op::Write { way: Way::Buffered, .. } => "write",
            Op::Write { way: Way::Direct, .. } => "dwrite",
            Op::Write { way: Way::Mapped, .. } => "mmap",
            Op::Read { .. } => "read",
            Op::Truncate { .. } => "truncate",
            Op::Fallocate { .. } => "fallocate",
            Op::Fsync(_) => "fsync",
            Op::Fdatasync(_) => "fdatasync",
            Op::Sync => "sync",
            Op::Setxattr { .. } => "setxattr",
            Op::Removexattr { .. } => "removexattr",
            Op::Chmod(..) => "chmod",
            Op::Chown(..) => "chown",
            Op::Reset => "reset",
        }
    }

    /// Makes what was done before it survive a crash, also where writes alone do not.
    pub fn is_persistence_point(&self) -> bool {
        matches!(self, Op::Fsync(_) | Op::Fdatasync(_) | Op::Sync)
    }

    /// Changes bytes of a file: the file system need not promise that all of them change together.
    pub fn changes_data(&self) -> bool {
        matches!(self, Op::Write { .. } | Op::Fallocate { .. })
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Offset::At(at) => write!(f, "{at}"),
            Offset::BeforeEnd(0) => f.write_str("end"),
            Offset::BeforeEnd(back) => write!(f, "end-{back}"),
        }
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// ` fd=2`, or nothing.
struct At<'a>(&'a File);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fd.map_or(Ok(()), |fd| write!(f, " fd={}", fd.0))
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Op::Creat(path) | Op::Mkdir(path) | Op::Rmdir(path) | Op::Unlink(path) | Op::Remove(path) => {
                write!(f, "{kind} {path}")
            }
            Op::Link(from, to) | Op::Symlink(from, to) | Op::Rename(from, to) => write!(f, "{kind} {from} {to}"),
            Op::Open { file, fd, truncate, append } => {
                let (truncate, append) = (if *truncate { " trunc" } else { "" }, if *append { " append" } else { "" });
                write!(f, "{kind} {file} fd={}{truncate}{append}", fd.0)
            }
            Op::Close(fd) => write!(f, "{kind} fd={}", fd.0),
            Op::Write { file, at, len, seed, .. } => {
                write!(f, "{kind} {file} {at} {len} seed={}{}", seed.0, At(file))
            }
            Op::Read { file, at, len } => write!(f, "{kind} {file} {at} {len}{}", At(file)),
            Op::Truncate { file, len } => write!(f, "{kind} {file} {len}{}", At(file)),
            Op::Fallocate { mode, file, at, len } => {
                write!(f, "{kind} {} {file} {at} {len}{}", mode.name(), At(file))
            }
            Op::Fsync(file) | Op::Fdatasync(file) => write!(f, "{kind} {file}{}", At(file)),
            Op::Setxattr { path, name, value } => write!(f, "{kind} {path} {name} {value}"),
            Op::Removexattr { path, name } => write!(f, "{kind} {path} {name}"),
            Op::Chmod(path, mode) => write!(f, "{kind} {path} {mode:o}"),
            Op::Chown(path, user, group) => write!(f, "{kind} {path} {user} {group}"),
            Op::Sync | Op::Reset => f.write_str(kind),
        }
    }
}
