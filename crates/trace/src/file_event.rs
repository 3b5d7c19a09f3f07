//! What happens to files and their names, beside what happens to pools: the part of a crash state that no mapping shows.
//!
//! The rules, numbered after those of [`event`](crate::event) so that the conformance suite can cite them:
//!
//! 10. A file is what the kernel calls an inode: it keeps its [`FileId`] when it is renamed, and has one while nobody names it. Names are
//!     absolute paths without symbolic links. Only what changes files is an event; every event comes after the change, and only if the
//!     call succeeded.
//! 11. A file that was there before the recording is part of the trace with what it was before its first change
//!     ([`FileInfo`](crate::FileInfo)): content, permissions, extended attributes.
//! 12. What a call writes is one [`FileEvent::Write`], cut at 4 KiB boundaries of the offset; all parts but the first `continue` it. A change of
//!     length comes first.
//! 13. [`FileEvent::Becomes`] says that a file is a pool from here on: what is written to it later are the events of pools. Its names
//!     are still told here.
//! 14. Owners and times of files are not recorded; nor are sockets, pipes and devices.

use crate::bytes::{Input, PutBytes};
use crate::error::Malformed;
use crate::event::{FileId, PathId, PoolId};

/// A change of files or names. Byte slices borrow from the reader's current block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileEvent<'a> {
    /// A new, empty file.
    Create {
        file: FileId,
        path: PathId,
        mode: u32,
    },
    /// The bytes are in the file. `continues`: the event before is of the same call.
    Write {
        file: FileId,
        offset: u64,
        bytes: &'a [u8],
        continues: bool,
    },
    /// The range is zero now; the length is what it was.
    Zero {
        file: FileId,
        offset: u64,
        len: u64,
    },
    /// The file has this length now.
    Length {
        file: FileId,
        len: u64,
    },
    /// The file is this pool from now on.
    Becomes {
        file: FileId,
        pool: PoolId,
    },
    /// Permissions of a file or directory.
    Mode {
        path: PathId,
        mode: u32,
    },
    SetXattr {
        path: PathId,
        name: &'a str,
        value: &'a [u8],
    },
    RemoveXattr {
        path: PathId,
        name: &'a str,
    },
    /// The file has one more name.
    Link {
        file: FileId,
        path: PathId,
    },
    Unlink {
        path: PathId,
    },
    /// What had the name `to` before has lost it.
    Rename {
        from: PathId,
        to: PathId,
    },
    Exchange {
        from: PathId,
        to: PathId,
    },
    MakeDirectory {
        path: PathId,
        mode: u32,
    },
    RemoveDirectory {
        path: PathId,
    },
    Symlink {
        path: PathId,
        target: &'a str,
    },
    /// `fsync` and the like of a file that is no pool; none: of everything (`sync`, `syncfs`).
    Sync {
        file: Option<FileId>,
        data_only: bool,
    },
}

const CREATE: u8 = 0;
const WRITE: u8 = 1;
const CONTINUE: u8 = 2;
const ZERO: u8 = 3;
const LENGTH: u8 = 4;
const BECOMES: u8 = 5;
const MODE: u8 = 6;
const SET_XATTR: u8 = 7;
const REMOVE_XATTR: u8 = 8;
const LINK: u8 = 9;
const UNLINK: u8 = 10;
const RENAME: u8 = 11;
const EXCHANGE: u8 = 12;
const MAKE_DIRECTORY: u8 = 13;
const REMOVE_DIRECTORY: u8 = 14;
const SYMLINK: u8 = 15;
const SYNC: u8 = 16;

impl<'a> FileEvent<'a> {
    /// The words for people and for `dump`.
    pub fn name(&self) -> &'static str {
        match self {
            FileEvent::Create { .. } => "create",
            FileEvent::Write { .. } => "write",
            FileEvent::Zero { .. } => "zero",
            FileEvent::Length { .. } => "length",
            FileEvent::Becomes { .. } => "becomes",
            FileEvent::Mode { .. } => "chmod",
            FileEvent::SetXattr { .. } => "setxattr",
            FileEvent::RemoveXattr { .. } => "removexattr",
            FileEvent::Link { .. } => "link",
            FileEvent::Unlink { .. } => "unlink",
            FileEvent::Rename { .. } => "rename",
            FileEvent::Exchange { .. } => "exchange",
            FileEvent::MakeDirectory { .. } => "mkdir",
            FileEvent::RemoveDirectory { .. } => "rmdir",
            FileEvent::Symlink { .. } => "symlink",
            FileEvent::Sync { data_only: false, .. } => "sync",
            FileEvent::Sync { data_only: true, .. } => "datasync",
        }
    }

    /// Does it change what recovery would find?
    pub fn changes(&self) -> bool {
        !matches!(self, FileEvent::Sync { .. } | FileEvent::Becomes { .. })
    }

    /// The paths that it names.
    pub fn paths(&self) -> impl Iterator<Item = PathId> {
        let (one, two) = match *self {
            FileEvent::Create { path, .. }
            | FileEvent::Mode { path, .. }
            | FileEvent::SetXattr { path, .. }
            | FileEvent::RemoveXattr { path, .. }
            | FileEvent::Link { path, .. }
            | FileEvent::Unlink { path }
            | FileEvent::MakeDirectory { path, .. }
            | FileEvent::RemoveDirectory { path }
            | FileEvent::Symlink { path, .. } => (Some(path), None),
            FileEvent::Rename { from, to } | FileEvent::Exchange { from, to } => (Some(from), Some(to)),
            FileEvent::Write { .. }
            | FileEvent::Zero { .. }
            | FileEvent::Length { .. }
            | FileEvent::Becomes { .. }
            | FileEvent::Sync { .. } => (None, None),
        };
        one.into_iter().chain(two)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut numbers = |tag: u8, numbers: &[u64]| {
            out.push(tag);
            numbers.iter().for_each(|number| out.varint(*number));
        };
        match *self {
            FileEvent::Create { file, path, mode } => numbers(CREATE, &[file.0.into(), path.0.into(), mode.into()]),
            FileEvent::Write { file, offset, bytes, continues } => {
                numbers(if continues { CONTINUE } else { WRITE }, &[file.0.into(), offset]);
                out.extend_from_slice(bytes);
            }
            FileEvent::Zero { file, offset, len } => numbers(ZERO, &[file.0.into(), offset, len]),
            FileEvent::Length { file, len } => numbers(LENGTH, &[file.0.into(), len]),
            FileEvent::Becomes { file, pool } => numbers(BECOMES, &[file.0.into(), pool.0.into()]),
            FileEvent::Mode { path, mode } => numbers(MODE, &[path.0.into(), mode.into()]),
            FileEvent::SetXattr { path, name, value } => {
                numbers(SET_XATTR, &[path.0.into()]);
                out.text(name.as_bytes());
                out.extend_from_slice(value);
            }
            FileEvent::RemoveXattr { path, name } => {
                numbers(REMOVE_XATTR, &[path.0.into()]);
                out.text(name.as_bytes());
            }
            FileEvent::Link { file, path } => numbers(LINK, &[file.0.into(), path.0.into()]),
            FileEvent::Unlink { path } => numbers(UNLINK, &[path.0.into()]),
            FileEvent::Rename { from, to } => numbers(RENAME, &[from.0.into(), to.0.into()]),
            FileEvent::Exchange { from, to } => numbers(EXCHANGE, &[from.0.into(), to.0.into()]),
            FileEvent::MakeDirectory { path, mode } => numbers(MAKE_DIRECTORY, &[path.0.into(), mode.into()]),
            FileEvent::RemoveDirectory { path } => numbers(REMOVE_DIRECTORY, &[path.0.into()]),
            FileEvent::Symlink { path, target } => {
                numbers(SYMLINK, &[path.0.into()]);
                out.text(target.as_bytes());
            }
            FileEvent::Sync { file, data_only } => {
                numbers(SYNC, &[file.map_or(0, |file| u64::from(file.0) + 1), data_only.into()]);
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &'a [u8]) -> Result<FileEvent<'a>, Malformed> {
        let mut input = Input(bytes);
        let file = |input: &mut Input<'a>| input.varint32().map(FileId);
        let path = |input: &mut Input<'a>| input.varint32().map(PathId);
        let text = |input: &mut Input<'a>| -> Result<&'a str, Malformed> {
            std::str::from_utf8(input.blob()?).map_err(|_| Malformed("a text is not UTF-8"))
        };
        let event = match input.byte()? {
            CREATE => FileEvent::Create { file: file(&mut input)?, path: path(&mut input)?, mode: input.varint32()? },
            tag @ (WRITE | CONTINUE) => {
                let (file, offset) = (file(&mut input)?, input.varint()?);
                let bytes = input.take(input.0.len())?;
                FileEvent::Write { file, offset, bytes, continues: tag == CONTINUE }
            }
            ZERO => FileEvent::Zero { file: file(&mut input)?, offset: input.varint()?, len: input.varint()? },
            LENGTH => FileEvent::Length { file: file(&mut input)?, len: input.varint()? },
            BECOMES => FileEvent::Becomes { file: file(&mut input)?, pool: PoolId(input.varint32()?) },
            MODE => FileEvent::Mode { path: path(&mut input)?, mode: input.varint32()? },
            SET_XATTR => {
                let (path, name) = (path(&mut input)?, text(&mut input)?);
                FileEvent::SetXattr { path, name, value: input.take(input.0.len())? }
            }
            REMOVE_XATTR => FileEvent::RemoveXattr { path: path(&mut input)?, name: text(&mut input)? },
            LINK => FileEvent::Link { file: file(&mut input)?, path: path(&mut input)? },
            UNLINK => FileEvent::Unlink { path: path(&mut input)? },
            RENAME => FileEvent::Rename { from: path(&mut input)?, to: path(&mut input)? },
            EXCHANGE => FileEvent::Exchange { from: path(&mut input)?, to: path(&mut input)? },
            MAKE_DIRECTORY => FileEvent::MakeDirectory { path: path(&mut input)?, mode: input.varint32()? },
            REMOVE_DIRECTORY => FileEvent::RemoveDirectory { path: path(&mut input)? },
            SYMLINK => FileEvent::Symlink { path: path(&mut input)?, target: text(&mut input)? },
            SYNC => {
                let file = input.varint32()?.checked_sub(1).map(FileId);
                FileEvent::Sync { file, data_only: input.byte()? != 0 }
            }
            _ => return Err(Malformed("unknown change of a file")),
        };
        if input.is_empty() { Ok(event) } else { Err(Malformed("a change of a file has too many bytes")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_comes_back() {
        let (file, path, to) = (FileId(300), PathId(0), PathId(70_000));
        let all = [
            FileEvent::Create { file, path, mode: 0o644 },
            FileEvent::Write { file, offset: 1 << 40, bytes: b"data", continues: false },
            FileEvent::Write { file, offset: 4096, bytes: b"", continues: true },
            FileEvent::Zero { file, offset: 1, len: u64::MAX },
            FileEvent::Length { file, len: 0 },
            FileEvent::Becomes { file, pool: PoolId(7) },
            FileEvent::Mode { path, mode: 0o600 },
            FileEvent::SetXattr { path, name: "user.x", value: b"\0\xff" },
            FileEvent::RemoveXattr { path, name: "user.x" },
            FileEvent::Link { file, path },
            FileEvent::Unlink { path },
            FileEvent::Rename { from: path, to },
            FileEvent::Exchange { from: path, to },
            FileEvent::MakeDirectory { path, mode: 0o755 },
            FileEvent::RemoveDirectory { path },
            FileEvent::Symlink { path, target: "../somewhere" },
            FileEvent::Sync { file: None, data_only: false },
            FileEvent::Sync { file: Some(FileId(0)), data_only: true },
        ];
        for event in all {
            let bytes = event.encode();
            assert_eq!(FileEvent::decode(&bytes).ok(), Some(event));
            assert!(FileEvent::decode(&bytes[..0]).is_err());
        }
        assert!(FileEvent::decode(&[99]).is_err());
        assert!(FileEvent::decode(&[UNLINK, 1, 1]).is_err(), "bytes that nobody wrote");
    }
}
