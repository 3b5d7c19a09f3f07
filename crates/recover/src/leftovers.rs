//! What a run has left in its private folders, and how to take it away before the next one.
//!
//! The server that is forked for every run, and with it the overlays, stay. What was created is removed through the server's own view of
//! the folder, so that the kernel knows of it. What was deleted or changed of the files that were there before cannot be brought back that
//! way: then the server must start anew, with fresh folders.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::folders::Folders;

/// Files of up to this many bytes that are there at the fork point are kept, to be put back.
const KEPT_BYTES: u64 = 64 << 10;

/// What a private folder's upper directory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LeftoverEntry {
    mode: u32,
    owner: (u32, u32),
    inode: u64,
    content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    /// Its own entries are listed apart. Times do not count.
    Directory,
    /// All bytes of a small file.
    Bytes(Vec<u8>),
    /// Whatever changes it changes this: length and time of the last change.
    Other(u64, i64, i64),
}

type Tree = BTreeMap<PathBuf, LeftoverEntry>;

/// How the private folders were at the fork point.
#[derive(Debug, Default)]
pub(crate) struct ForkPoint {
    trees: Vec<Tree>,
}

/// What became of what a run had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restored {
    /// Nothing had changed since the fork point.
    Untouched,
    /// Everything is as it was at the fork point again.
    Yes,
    /// The server must start anew.
    No,
}

impl ForkPoint {
    pub fn take(folders: &Folders) -> io::Result<ForkPoint> {
        let trees = folders.layers().iter().map(|layer| tree(&layer.upper)).collect::<Result<_, _>>()?;
        Ok(ForkPoint { trees })
    }

    /// After a run, when none of its processes is left. `root`: the root directory as the server sees it.
    pub fn restore(&self, folders: &Folders, root: &Path) -> io::Result<Restored> {
        let mut all = Restored::Untouched;
        for (layer, before) in folders.layers().iter().zip(&self.trees) {
            if before.is_empty() && is_empty(&layer.upper)? {
                continue;
            }
            let inside = root.join(layer.dir.strip_prefix("/").unwrap_or(&layer.dir));
            match restore(before, &tree(&layer.upper)?, &layer.dir, &inside)? {
                Restored::Untouched => {}
                Restored::Yes => all = Restored::Yes,
                Restored::No => return Ok(Restored::No),
            }
        }
        Ok(all)
    }
}

fn is_empty(dir: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(dir)?.next().is_none())
}

fn restore(before: &Tree, now: &Tree, lower: &Path, inside: &Path) -> io::Result<Restored> {
    if before.keys().any(|path| !now.contains_key(path)) {
        return Ok(Restored::No);
    }
    let mut created: Vec<&Path> = Vec::new();
    let mut rewritten = false;
    for (path, entry) in now {
        if created.iter().any(|dir| path.starts_with(dir)) {
            continue;
        }
        match before.get(path) {
            Some(was) if was == entry => {}
            Some(LeftoverEntry { content: Content::Bytes(bytes), mode, owner, inode }) => {
                let same = (*mode, *owner, *inode) == (entry.mode, entry.owner, entry.inode);
                if !same || !matches!(entry.content, Content::Bytes(_)) {
                    return Ok(Restored::No);
                }
                fs::write(inside.join(path), bytes)?;
                rewritten = true;
            }
            Some(_) => return Ok(Restored::No),
            None => match fs::symlink_metadata(lower.join(path)) {
                Ok(below) if is_same_directory(&below, entry) => {}
                Ok(_) => return Ok(Restored::No),
                Err(_) => created.push(path),
            },
        }
    }
    let untouched = created.is_empty() && !rewritten;
    for path in created {
        remove(&inside.join(path))?;
    }
    Ok(if untouched { Restored::Untouched } else { Restored::Yes })
}

/// A directory is copied to the upper one when something is created beneath it.
fn is_same_directory(below: &fs::Metadata, entry: &LeftoverEntry) -> bool {
    // One that hides what lies below has another content.
    below.is_dir()
        && entry.content == Content::Directory
        && below.mode() == entry.mode
        && (below.uid(), below.gid()) == entry.owner
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Everything beneath a directory, by path from there.
fn tree(upper: &Path) -> io::Result<Tree> {
    let mut tree = Tree::new();
    let mut todo = vec![PathBuf::new()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(upper.join(&dir))? {
            let path = dir.join(entry?.file_name());
            let full = upper.join(&path);
            let metadata = fs::symlink_metadata(&full)?;
            let content = content(&full, &metadata)?;
            if content == Content::Directory {
                todo.push(path.clone());
            }
            let (mode, owner) = (metadata.mode(), (metadata.uid(), metadata.gid()));
            tree.insert(path, LeftoverEntry { mode, owner, inode: metadata.ino(), content });
        }
    }
    Ok(tree)
}

fn content(path: &Path, metadata: &fs::Metadata) -> io::Result<Content> {
    let other = Content::Other(metadata.len(), metadata.ctime(), metadata.ctime_nsec());
    let kind = metadata.file_type();
    if kind.is_dir() {
        // A directory that took the place of another hides what that held.
        return Ok(if is_opaque(path) { other } else { Content::Directory });
    }
    if kind.is_file() && metadata.len() <= KEPT_BYTES && attributes(path).is_empty() {
        return fs::read(path).map(Content::Bytes);
    }
    Ok(other)
}

fn is_opaque(dir: &Path) -> bool {
    let names = attributes(dir);
    names.split(|&byte| byte == 0).any(|name| name.ends_with(b"overlay.opaque"))
}

/// Names of extended attributes, each with a zero byte. Those of the overlay itself that only remember an origin do not count.
fn attributes(path: &Path) -> Vec<u8> {
    let all = crate::slot::attributes(path);
    let counts = |name: &&[u8]| {
        !name.is_empty()
            && ![&b"overlay.origin"[..], b"overlay.impure", b"overlay.uuid"].iter().any(|end| name.ends_with(end))
    };
    all.split(|&byte| byte == 0).filter(counts).flat_map(|name| name.iter().copied().chain([0])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `lower` has `old` and `sub/old`; what `change` does to the upper directory is compared with what was there.
    fn after(change: impl Fn(&Path)) -> (Restored, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let (lower, upper) = (dir.path().join("lower"), dir.path().join("upper"));
        for sub in [lower.join("sub"), upper.clone()] {
            fs::create_dir_all(sub).unwrap();
        }
        for file in [lower.join("old"), lower.join("sub/old"), upper.join("log")] {
            fs::write(file, b"old").unwrap();
        }
        let before = tree(&upper).unwrap();
        change(&upper);
        // The upper directory stands for the merged one: what is removed there is removed here.
        let restored = restore(&before, &tree(&upper).unwrap(), &lower, &upper).unwrap();
        let mut left: Vec<_> = tree(&upper).unwrap().keys().map(|path| path.display().to_string()).collect();
        left.sort();
        (restored, left)
    }

    #[test]
    fn what_was_created_is_removed() {
        let (restored, left) = after(|upper| {
            fs::write(upper.join("new"), b"x").unwrap();
            fs::create_dir_all(upper.join("sub/deep/er")).unwrap();
            fs::write(upper.join("sub/deep/er/new"), b"x").unwrap();
        });
        assert_eq!((restored, left), (Restored::Yes, vec!["log".to_owned(), "sub".to_owned()]));
    }

    #[test]
    fn a_small_file_gets_its_content_back() {
        let (restored, left) = after(|upper| fs::write(upper.join("log"), b"old and new").unwrap());
        assert_eq!((restored, left), (Restored::Yes, vec!["log".to_owned()]));
    }

    #[test]
    fn what_changes_files_of_the_lower_directory_needs_a_new_server() {
        // A file of the upper directory that the lower one has as well is a changed copy.
        assert_eq!(after(|upper| fs::write(upper.join("old"), b"new").unwrap()).0, Restored::No);
        assert_eq!(after(|upper| fs::remove_file(upper.join("log")).unwrap()).0, Restored::No);
        assert_eq!(after(|upper| fs::create_dir(upper.join("old")).unwrap()).0, Restored::No);
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(after(|_| ()).0, Restored::Untouched);
    }
}
