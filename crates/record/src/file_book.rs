//! What is known of the target's files, for both recorders: tells changes of names as events, and saves what was there before the
//! first change of it (rules 10 to 14 of the trace).
//!
//! A recorder says what is about to happen ([`FileBook::before`]) while the files are as they were, and that it has happened
//! ([`FileBook::after`]) while nobody has changed them again. The book looks at the files themselves at both times.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use trace::event::{FileEvent, FileId, PathId, PoolId, ThreadId};
use trace::{FileInfo, FileKind, FoundName, TraceWriter, WriteError};
use wire::record::file;

/// A file by device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    pub device: u64,
    pub inode: u64,
}

/// A system call that changes names, or a file that is named by a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameChange {
    /// One of [`wire::record::file`].
    pub op: u8,
    /// As the target named it, made absolute.
    pub path: String,
    /// The second path, the target of a symbolic link, the name of an attribute.
    pub other: String,
}

/// A change with its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Plain(FileEvent<'static>),
    Symlink { path: PathId, target: String },
    SetXattr { path: PathId, name: String, value: Vec<u8> },
    RemoveXattr { path: PathId, name: String },
}

impl Change {
    pub fn event(&self) -> FileEvent<'_> {
        match self {
            Change::Plain(event) => *event,
            Change::Symlink { path, target } => FileEvent::Symlink { path: *path, target },
            Change::SetXattr { path, name, value } => FileEvent::SetXattr { path: *path, name, value },
            Change::RemoveXattr { path, name } => FileEvent::RemoveXattr { path: *path, name },
        }
    }
}

/// What is under a path.
#[derive(Clone, Debug)]
enum Look {
    Nothing,
    Regular {
        key: FileKey,
        len: u64,
        mode: u32,
        links: u64,
    },
    Directory {
        mode: u32,
    },
    Symlink {
        target: String,
    },
    /// A pipe, a socket, a device.
    Other,
}

fn mode_of(found: &Metadata) -> u32 {
    found.permissions().mode() & 0o7777
}

impl Look {
    fn at(path: &str) -> Look {
        let Ok(found) = fs::symlink_metadata(path) else { return Look::Nothing };
        let mode = mode_of(&found);
        if found.is_file() {
            let key = FileKey { device: found.dev(), inode: found.ino() };
            Look::Regular { key, len: found.len(), mode, links: found.nlink() }
        } else if found.is_dir() {
            Look::Directory { mode }
        } else if found.is_symlink() {
            let target = fs::read_link(path).unwrap_or_default();
            Look::Symlink { target: target.to_string_lossy().into_owned() }
        } else {
            Look::Other
        }
    }
}

#[derive(Debug)]
struct Begun {
    step: NameChange,
    path: String,
    other: String,
    first: Look,
    second: Look,
}

/// Which files the target has changed, and how they are numbered.
#[derive(Debug, Default)]
pub struct FileBook {
    files: HashMap<FileKey, FileId>,
    pools: HashMap<FileKey, PoolId>,
    /// Names that are in the trace.
    names: HashSet<String>,
    begun: HashMap<ThreadId, Begun>,
}

impl FileBook {
    /// The number of a file that is in the trace.
    pub fn find(&self, key: FileKey) -> Option<FileId> {
        self.files.get(&key).copied()
    }

    /// A call is about to be made: what it may change goes into the trace as it is.
    pub fn before(&mut self, trace: &mut TraceWriter, thread: ThreadId, step: NameChange) -> Result<(), WriteError> {
        let follows = !matches!(step.op, file::UNLINK | file::RMDIR | file::RENAME | file::EXCHANGE | file::LINK)
            && !matches!(step.op, file::SYMLINK | file::MKDIR | file::LCHANGE_XATTR);
        let path = resolved(&step.path, follows);
        let has_two = matches!(step.op, file::RENAME | file::EXCHANGE | file::LINK);
        let other = if has_two { resolved(&step.other, false) } else { String::new() };
        let (first, second) = (Look::at(&path), if has_two { Look::at(&other) } else { Look::Nothing });
        if step.op != file::MKDIR && step.op != file::SYMLINK {
            self.register(trace, &path, &first)?;
        }
        if has_two {
            self.register(trace, &other, &second)?;
        }
        self.begun.insert(thread, Begun { step, path, other, first, second });
        Ok(())
    }

    /// The call that was announced last has succeeded: the changes to tell, in order.
    pub fn after(&mut self, trace: &mut TraceWriter, thread: ThreadId) -> Vec<Change> {
        let Some(begun) = self.begun.remove(&thread) else { return Vec::new() };
        let Begun { step, path, other, first, second } = begun;
        let id = trace.path(&path);
        let mut changes = Vec::new();
        match step.op {
            file::OPEN | file::TRUNCATE => {
                // An open may have come through a link to nowhere.
                let now = resolved(&path, true);
                match (&first, Look::at(&now)) {
                    (Look::Nothing | Look::Symlink { .. }, Look::Regular { key, mode, len, .. }) => {
                        let file = self.created(trace, key, &now);
                        let path = trace.path(&now);
                        changes.push(Change::Plain(FileEvent::Create { file, path, mode }));
                        if len > 0 {
                            changes.push(Change::Plain(FileEvent::Length { file, len }));
                        }
                    }
                    (Look::Regular { len: before, .. }, Look::Regular { key, len, .. }) if *before != len => {
                        let known = self.find(key).filter(|_| !self.pools.contains_key(&key));
                        changes.extend(known.map(|file| Change::Plain(FileEvent::Length { file, len })));
                    }
                    _ => {}
                }
            }
            file::UNLINK => {
                if let Look::Regular { key, links: 1, .. } = first
                    && !self.pools.contains_key(&key)
                {
                    self.files.remove(&key);
                }
                changes.push(Change::Plain(FileEvent::Unlink { path: id }));
            }
            file::RMDIR => changes.push(Change::Plain(FileEvent::RemoveDirectory { path: id })),
            file::MKDIR => {
                if let Look::Directory { mode } = Look::at(&path) {
                    self.names.insert(path.clone());
                    changes.push(Change::Plain(FileEvent::MakeDirectory { path: id, mode }));
                }
            }
            file::SYMLINK => {
                self.names.insert(path.clone());
                changes.push(Change::Symlink { path: id, target: step.other });
            }
            file::LINK => {
                if let Look::Regular { key, .. } = first
                    && let Some(file) = self.find(key)
                {
                    let to = trace.path(&other);
                    self.names.insert(other);
                    changes.push(Change::Plain(FileEvent::Link { file, path: to }));
                }
            }
            file::RENAME | file::EXCHANGE => {
                let same =
                    matches!((&first, &second), (Look::Regular { key: a, .. }, Look::Regular { key: b, .. }) if a == b);
                // rename(2): two names of one file stay as they are.
                if path != other && !same {
                    let to = trace.path(&other);
                    self.moved(&path, &other);
                    let exchange = step.op == file::EXCHANGE;
                    let event = if exchange {
                        self.moved(&other, &path);
                        FileEvent::Exchange { from: id, to }
                    } else {
                        FileEvent::Rename { from: id, to }
                    };
                    changes.push(Change::Plain(event));
                }
            }
            file::MODE => match Look::at(&path) {
                Look::Regular { mode, .. } | Look::Directory { mode } => {
                    changes.push(Change::Plain(FileEvent::Mode { path: id, mode }));
                }
                _ => {}
            },
            file::CHANGE_XATTR | file::LCHANGE_XATTR => {
                let name = step.other;
                changes.push(match attribute(&path, &name) {
                    Some(value) => Change::SetXattr { path: id, name, value },
                    None => Change::RemoveXattr { path: id, name },
                });
            }
            _ => {}
        }
        changes
    }

    /// A file is a pool from here on. `path` is its name.
    pub fn becomes_pool(
        &mut self,
        trace: &mut TraceWriter,
        key: FileKey,
        path: &str,
        pool: PoolId,
    ) -> Result<Option<Change>, WriteError> {
        if self.pools.insert(key, pool).is_some() {
            return Ok(None);
        }
        if let Some(file) = self.find(key) {
            return Ok(Some(Change::Plain(FileEvent::Becomes { file, pool })));
        }
        let Look::Regular { key: found, len, mode, .. } = Look::at(path) else { return Ok(None) };
        if found == key {
            let file = self.created(trace, key, path);
            let kind = FileKind::Regular { file, len, pool: Some(pool) };
            trace.file(&FileInfo { path: path.to_owned(), kind, mode, xattrs: attributes(path) }, None)?;
        }
        Ok(None)
    }

    /// What is under every path of the trace now, for `verify`.
    pub fn finals(&self, trace: &TraceWriter) -> Vec<(String, FoundName)> {
        let found = |path: &str| match Look::at(path) {
            Look::Nothing | Look::Other => FoundName::Nothing,
            Look::Directory { mode } => FoundName::Directory { mode },
            Look::Symlink { target } => FoundName::Symlink { target },
            Look::Regular { key, mode, .. } => {
                let content = if self.pools.contains_key(&key) { None } else { content_identity(path) };
                FoundName::Regular { mode, content }
            }
        };
        trace.paths().into_iter().map(|path| (path.clone(), found(&path))).collect()
    }

    fn created(&mut self, trace: &mut TraceWriter, key: FileKey, path: &str) -> FileId {
        let file = trace.new_file();
        self.files.insert(key, file);
        self.names.insert(path.to_owned());
        file
    }

    fn moved(&mut self, from: &str, to: &str) {
        let below = |name: &String| {
            name.strip_prefix(from).filter(|rest| rest.starts_with('/')).map(|rest| format!("{to}{rest}"))
        };
        let names: Vec<String> = self.names.iter().filter_map(below).collect();
        self.names.extend(names);
        self.names.insert(to.to_owned());
    }

    /// Puts what is under a path into the trace, if it is not there yet.
    fn register(&mut self, trace: &mut TraceWriter, path: &str, look: &Look) -> Result<(), WriteError> {
        if self.names.contains(path) {
            return Ok(());
        }
        let info = |kind, mode| FileInfo { path: path.to_owned(), kind, mode, xattrs: attributes(path) };
        match look {
            Look::Nothing | Look::Other => {}
            Look::Regular { key, len, mode, .. } => {
                if let Some(file) = self.find(*key) {
                    // One more name of it.
                    let kind = FileKind::Regular { file, len: *len, pool: self.pools.get(key).copied() };
                    trace.file(&info(kind, *mode), None)?;
                } else {
                    let unreadable = |source| WriteError::Pool { pool: path.to_owned(), source };
                    let mut content = File::open(path).map_err(unreadable)?;
                    let file = self.created(trace, *key, path);
                    trace.file(&info(FileKind::Regular { file, len: *len, pool: None }, *mode), Some(&mut content))?;
                }
            }
            Look::Directory { mode } => {
                trace.file(&info(FileKind::Directory, *mode), None)?;
                self.names.insert(path.to_owned());
                // It may be renamed: what is in it goes along.
                let inside = fs::read_dir(path).into_iter().flatten().flatten();
                let mut inside: Vec<PathBuf> = inside.map(|entry| entry.path()).collect();
                inside.sort();
                for path in inside {
                    let path = path.to_string_lossy().into_owned();
                    let look = Look::at(&path);
                    self.register(trace, &path, &look)?;
                }
            }
            Look::Symlink { target } => trace.file(&info(FileKind::Symlink { target: target.clone() }, 0o777), None)?,
        }
        self.names.insert(path.to_owned());
        Ok(())
    }
}

fn content_identity(path: &str) -> Option<u128> {
    let mut file = File::open(path).ok()?;
    Some(trace::read_image(&mut file).ok()?.identity())
}

/// The path without links in its directories; in its last part only if `follows`.
fn resolved(path: &str, follows: bool) -> String {
    let path = Path::new(path);
    let whole = || path.canonicalize();
    let by_directory = || -> io::Result<PathBuf> {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
            _ => path.canonicalize(),
        }
    };
    let found = if follows { whole().or_else(|_| by_directory()) } else { by_directory() };
    found.unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

/// The extended attributes that a user may set.
fn attributes(path: &str) -> BTreeMap<String, Vec<u8>> {
    let mut list = vec![0; 64 << 10];
    let len = rustix::fs::llistxattr(path, &mut list[..]).unwrap_or(0);
    let names = list[..len].split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
    names
        .filter(|name| name.starts_with("user."))
        .filter_map(|name| Some((name.to_owned(), attribute(path, name)?)))
        .collect()
}

fn attribute(path: &str, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 64 << 10];
    let len = rustix::fs::lgetxattr(path, name, &mut value[..]).ok()?;
    value.truncate(len);
    Some(value)
}
