//! The files and names that a trace tells of, while its events are replayed. What was never changed is not in here.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::event::{FileEvent, FileId, PathId, PoolId};
use crate::image::{OutOfRange, PoolImage};
use crate::tables::{FileInfo, FileKind, Tables};

/// Permissions and extended attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The permission bits.
    pub mode: u32,
    pub xattrs: BTreeMap<String, Vec<u8>>,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileTreeEntry {
    File(FileId),
    Directory(Attributes),
    Symlink(String),
}

/// The bytes of a file.
#[derive(Clone, Debug)]
pub enum FileContent {
    Bytes(PoolImage),
    /// It is this pool: the pool's image has the bytes.
    Pool(PoolId),
}

/// A file, whatever its names are.
#[derive(Clone, Debug)]
pub struct FileState {
    pub content: FileContent,
    pub attributes: Attributes,
    hash: OnceLock<u128>,
}

impl FileState {
    fn new(content: FileContent, attributes: Attributes) -> FileState {
        FileState { content, attributes, hash: OnceLock::new() }
    }

    /// Stands for content and attributes. The bytes of a pool are not part of it.
    fn identity(&self) -> u128 {
        *self.hash.get_or_init(|| {
            let mut hash = Xxh3::new();
            match &self.content {
                FileContent::Bytes(image) => hash.update(&image.identity().to_le_bytes()),
                FileContent::Pool(pool) => hash.update(&[&b"pool"[..], &pool.0.to_le_bytes()].concat()),
            }
            add_attributes(&mut hash, &self.attributes);
            hash.digest128()
        })
    }
}

fn add_attributes(hash: &mut Xxh3, attributes: &Attributes) {
    hash.update(&attributes.mode.to_le_bytes());
    for (name, value) in &attributes.xattrs {
        add_text(hash, name.as_bytes());
        add_text(hash, value);
    }
}

fn add_text(hash: &mut Xxh3, text: &[u8]) {
    hash.update(&(text.len() as u64).to_le_bytes());
    hash.update(text);
}

/// All files that the target has changed or will change, at one place of the trace.
#[derive(Clone, Debug, Default)]
pub struct FileTree {
    names: BTreeMap<Arc<str>, FileTreeEntry>,
    files: FxHashMap<FileId, FileState>,
    /// Files that hold this all the time, whatever the events say.
    left: Arc<FxHashMap<FileId, PoolImage>>,
    identity: OnceLock<u128>,
}

impl FileTree {
    /// As it was before the recording; `content` is what a file held then.
    pub(crate) fn initial(files: &[FileInfo], mut content: impl FnMut(FileId) -> PoolImage) -> FileTree {
        let mut tree = FileTree::default();
        for info in files {
            let attributes = Attributes { mode: info.mode, xattrs: info.xattrs.clone() };
            let entry = match &info.kind {
                FileKind::Regular { file, pool, .. } => {
                    let content = match pool {
                        Some(pool) => FileContent::Pool(*pool),
                        None => FileContent::Bytes(content(*file)),
                    };
                    // A file with several names is told once for each.
                    tree.files.entry(*file).or_insert_with(|| FileState::new(content, attributes));
                    FileTreeEntry::File(*file)
                }
                FileKind::Directory => FileTreeEntry::Directory(attributes),
                FileKind::Symlink { target } => FileTreeEntry::Symlink(target.clone()),
            };
            tree.names.insert(info.path.as_str().into(), entry);
        }
        tree
    }

    /// From its creation on the file holds this.
    pub(crate) fn leave(&mut self, file: FileId, content: PoolImage) {
        if let Some(state) = self.files.get_mut(&file) {
            *state = FileState::new(FileContent::Bytes(content.clone()), state.attributes.clone());
        }
        self.identity = OnceLock::new();
        Arc::make_mut(&mut self.left).insert(file, content);
    }

    /// The names that exist, a directory before what is in it.
    pub fn names(&self) -> impl Iterator<Item = (&str, &FileTreeEntry)> {
        self.names.iter().map(|(path, entry)| (&**path, entry))
    }

    pub fn find(&self, path: &str) -> Option<&FileTreeEntry> {
        self.names.get(path)
    }

    pub fn file(&self, file: FileId) -> Option<&FileState> {
        self.files.get(&file)
    }

    /// Are there no files to tell of?
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Stands for all names and what is behind them, but for the bytes of pools: equal trees have equal ones.
    pub fn identity(&self) -> u128 {
        *self.identity.get_or_init(|| {
            let mut hash = Xxh3::new();
            for path in self.names.keys() {
                hash.update(&self.identity_of(path).to_le_bytes());
            }
            hash.digest128()
        })
    }

    /// As [`identity`](Self::identity), of what one path names; also of a path that names nothing.
    pub fn identity_of(&self, path: &str) -> u128 {
        let mut hash = Xxh3::new();
        add_text(&mut hash, path.as_bytes());
        match self.names.get(path) {
            None => hash.update(b"-"),
            Some(FileTreeEntry::File(file)) => {
                hash.update(b"f");
                hash.update(&self.files.get(file).map_or(0, FileState::identity).to_le_bytes());
                // Two names of one file are not two equal files.
                hash.update(&file.0.to_le_bytes());
            }
            Some(FileTreeEntry::Directory(attributes)) => {
                hash.update(b"d");
                add_attributes(&mut hash, attributes);
            }
            Some(FileTreeEntry::Symlink(target)) => {
                hash.update(b"l");
                add_text(&mut hash, target.as_bytes());
            }
        }
        hash.digest128()
    }

    /// Lets a change happen. What it tells of files that nobody introduced is passed over.
    pub fn apply(&mut self, event: &FileEvent<'_>, tables: &Tables) -> Result<(), OutOfRange> {
        if !event.changes() && !matches!(event, FileEvent::Becomes { .. }) {
            return Ok(());
        }
        self.identity = OnceLock::new();
        let path = |path: PathId| tables.paths.get(path.0 as usize).map(String::as_str).unwrap_or_default();
        match *event {
            FileEvent::Create { file, path: at, mode } => {
                let attributes = Attributes { mode, ..Attributes::default() };
                let content = self.left.get(&file).cloned().unwrap_or_else(|| PoolImage::new(0));
                self.files.insert(file, FileState::new(FileContent::Bytes(content), attributes));
                self.names.insert(path(at).into(), FileTreeEntry::File(file));
            }
            FileEvent::Write { file, offset, bytes, .. } => {
                if let Some(image) = self.bytes(file) {
                    let end = offset.checked_add(bytes.len() as u64).ok_or(OutOfRange)?;
                    if end > image.len() {
                        image.resize(end);
                    }
                    image.write(offset, bytes)?;
                }
            }
            FileEvent::Zero { file, offset, len } => {
                if let Some(image) = self.bytes(file) {
                    image.zero(offset, len.min(image.len().saturating_sub(offset)));
                }
            }
            FileEvent::Length { file, len } => {
                if let Some(image) = self.bytes(file) {
                    image.resize(len);
                }
            }
            FileEvent::Becomes { file, pool } => {
                if let Some(state) = self.files.get_mut(&file) {
                    state.content = FileContent::Pool(pool);
                    state.hash = OnceLock::new();
                }
            }
            FileEvent::Mode { path: at, mode } => self.attributes(path(at), |attributes| attributes.mode = mode),
            FileEvent::SetXattr { path: at, name, value } => self.attributes(path(at), |attributes| {
                attributes.xattrs.insert(name.to_owned(), value.to_vec());
            }),
            FileEvent::RemoveXattr { path: at, name } => self.attributes(path(at), |attributes| {
                attributes.xattrs.remove(name);
            }),
            FileEvent::Link { file, path: at } => {
                self.names.insert(path(at).into(), FileTreeEntry::File(file));
            }
            FileEvent::Unlink { path: at } | FileEvent::RemoveDirectory { path: at } => {
                self.names.remove(path(at));
            }
            FileEvent::Rename { from, to } => {
                let moved = self.take(path(from));
                self.take(path(to));
                self.put(path(to), moved);
            }
            FileEvent::Exchange { from, to } => {
                let (one, other) = (self.take(path(from)), self.take(path(to)));
                self.put(path(to), one);
                self.put(path(from), other);
            }
            FileEvent::MakeDirectory { path: at, mode } => {
                let attributes = Attributes { mode, ..Attributes::default() };
                self.names.insert(path(at).into(), FileTreeEntry::Directory(attributes));
            }
            FileEvent::Symlink { path: at, target } => {
                self.names.insert(path(at).into(), FileTreeEntry::Symlink(target.to_owned()));
            }
            FileEvent::Sync { .. } => {}
        }
        Ok(())
    }

    fn bytes(&mut self, file: FileId) -> Option<&mut PoolImage> {
        if self.left.contains_key(&file) {
            return None;
        }
        let state = self.files.get_mut(&file)?;
        state.hash = OnceLock::new();
        match &mut state.content {
            FileContent::Bytes(image) => Some(image),
            FileContent::Pool(_) => None,
        }
    }

    fn attributes(&mut self, path: &str, change: impl FnOnce(&mut Attributes)) {
        match self.names.get_mut(path) {
            Some(FileTreeEntry::File(file)) => {
                if let Some(state) = self.files.get_mut(file) {
                    state.hash = OnceLock::new();
                    change(&mut state.attributes);
                }
            }
            Some(FileTreeEntry::Directory(attributes)) => change(attributes),
            Some(FileTreeEntry::Symlink(_)) | None => {}
        }
    }

    /// Takes a name, and all that is beneath it, out: by what follows `path`.
    fn take(&mut self, path: &str) -> Vec<(String, FileTreeEntry)> {
        let is_below =
            |name: &str| name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let names: Vec<Arc<str>> = self
            .names
            .range::<str, _>((std::ops::Bound::Included(path), std::ops::Bound::Unbounded))
            .map(|(name, _)| name)
            .take_while(|name| name.starts_with(path))
            .filter(|name| is_below(name))
            .cloned()
            .collect();
        names
            .into_iter()
            .filter_map(|name| self.names.remove(&name).map(|entry| (name[path.len()..].to_owned(), entry)))
            .collect()
    }

    fn put(&mut self, path: &str, entries: Vec<(String, FileTreeEntry)>) {
        self.names.extend(entries.into_iter().map(|(rest, entry)| (format!("{path}{rest}").into(), entry)));
    }

    /// What is under a name, to be compared with what really is there.
    pub fn found(&self, path: &str) -> FoundName {
        match self.names.get(path) {
            None => FoundName::Nothing,
            Some(FileTreeEntry::Directory(attributes)) => FoundName::Directory { mode: attributes.mode },
            Some(FileTreeEntry::Symlink(target)) => FoundName::Symlink { target: target.clone() },
            Some(FileTreeEntry::File(file)) => match self.files.get(file) {
                None => FoundName::Nothing,
                Some(FileState { content: FileContent::Pool(_), attributes, .. }) => {
                    FoundName::Regular { mode: attributes.mode, content: None }
                }
                Some(FileState { content: FileContent::Bytes(image), attributes, .. }) => {
                    FoundName::Regular { mode: attributes.mode, content: Some(image.identity()) }
                }
            },
        }
    }
}

/// What is under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundName {
    Nothing,
    /// `content` stands for length and bytes; none: it is a pool, whose content is compared elsewhere.
    Regular {
        mode: u32,
        content: Option<u128>,
    },
    Directory {
        mode: u32,
    },
    Symlink {
        target: String,
    },
}

impl FoundName {
    /// Are both the same, as far as they tell?
    pub fn agrees(&self, other: &FoundName) -> bool {
        match (self, other) {
            (FoundName::Regular { mode, content }, FoundName::Regular { mode: other_mode, content: other }) => {
                mode == other_mode && (content.is_none() || other.is_none() || content == other)
            }
            _ => self == other,
        }
    }
}

impl PoolImage {
    /// Stands for length and content: equal ones for equal bytes, however they came to be.
    pub fn identity(&self) -> u128 {
        let mut numbers: Vec<u64> = self.page_numbers().collect();
        numbers.sort_unstable();
        let mut hash = Xxh3::new();
        hash.update(&self.len().to_le_bytes());
        for number in numbers {
            let page = self.page(number).filter(|page| page.iter().any(|byte| *byte != 0));
            if let Some(page) = page {
                hash.update(&number.to_le_bytes());
                hash.update(&xxh3_128(page).to_le_bytes());
            }
        }
        hash.digest128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> Tables {
        let paths = ["/a", "/b", "/dir", "/dir/x", "/dirty"].map(str::to_owned).to_vec();
        Tables { paths, ..Tables::default() }
    }

    fn names(tree: &FileTree) -> Vec<&str> {
        tree.names().map(|(path, _)| path).collect()
    }

    #[test]
    fn directories_move_with_what_is_in_them() {
        let tables = tables();
        let mut tree = FileTree::default();
        let [a, _, dir, x, dirty] = [0, 1, 2, 3, 4].map(PathId);
        for event in [
            FileEvent::MakeDirectory { path: dir, mode: 0o755 },
            FileEvent::Create { file: FileId(0), path: x, mode: 0o600 },
            FileEvent::Create { file: FileId(1), path: dirty, mode: 0o600 },
            FileEvent::Rename { from: dir, to: a },
        ] {
            tree.apply(&event, &tables).unwrap();
        }
        assert_eq!(names(&tree), ["/a", "/a/x", "/dirty"]);
        tree.apply(&FileEvent::Exchange { from: a, to: dirty }, &tables).unwrap();
        assert_eq!(names(&tree), ["/a", "/dirty", "/dirty/x"]);
    }

    #[test]
    fn a_file_that_is_not_explained_stays_as_it_was_left() {
        let tables = tables();
        let (file, path) = (FileId(0), PathId(0));
        let mut left = PoolImage::new(2);
        left.write(0, b"ab").unwrap();
        let mut tree = FileTree::default();
        tree.leave(file, left.clone());
        assert!(tree.find("/a").is_none(), "it is not there before it is created");
        for event in [
            FileEvent::Create { file, path, mode: 0o600 },
            FileEvent::Length { file, len: 5000 },
            FileEvent::Write { file, offset: 0, bytes: b"x", continues: false },
        ] {
            tree.apply(&event, &tables).unwrap();
            assert_eq!(tree.found("/a"), FoundName::Regular { mode: 0o600, content: Some(left.identity()) });
        }
    }

    #[test]
    fn identity_is_of_content_not_of_history() {
        let tables = tables();
        let (file, path) = (FileId(0), PathId(0));
        let write = |bytes, offset| FileEvent::Write { file, offset, bytes, continues: false };
        let create = FileEvent::Create { file, path, mode: 0o600 };
        let run = |events: &[FileEvent<'_>]| {
            let mut tree = FileTree::default();
            events.iter().for_each(|event| tree.apply(event, &tables).unwrap());
            tree.identity()
        };
        let one = run(&[create, write(b"ab", 0)]);
        assert_eq!(one, run(&[create, write(b"xb", 0), write(b"a", 0)]));
        assert_ne!(one, run(&[create, write(b"ab", 0), FileEvent::Length { file, len: 5000 }]));
        assert_ne!(one, run(&[create, write(b"ab", 0), FileEvent::Mode { path, mode: 0o644 }]));
        assert_ne!(one, run(&[create, write(b"ab", 0), FileEvent::Link { file, path: PathId(1) }]));
        let cut = [create, write(b"ab", 5000), FileEvent::Length { file, len: 0 }, write(b"ab", 0)];
        assert_eq!(one, run(&cut), "pages that are zero are as good as none");
    }
}
