//! The files of a crash state beside its pools: private folders that stand for the folders in which the target changed files.
//!
//! A *root* is a folder of the target's: one that holds pools, or its working directory. For each there is a private folder with what a
//! crash left there of the names that the recording tells of. Pools are in it as further names (hard links) of their stand-ins. Names
//! that the recording does not tell of are not in it: recovery finds the real ones.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use trace::event::PoolId;
use trace::{Attributes, FileContent, FileTree, FileTreeEntry, PoolImage};

/// What is under a name.
#[derive(Clone, Debug)]
pub enum Named<'a> {
    Nothing,
    Regular { content: Bytes<'a>, attributes: &'a Attributes },
    Directory { attributes: &'a Attributes },
    Symlink { target: &'a str },
}

/// The bytes of a regular file.
#[derive(Clone, Copy, Debug)]
pub enum Bytes<'a> {
    Image(&'a PoolImage),
    /// A file with the same bytes.
    Copy(&'a Path),
    Pool(PoolId),
}

/// What a tree has under a name.
pub fn in_tree<'t>(tree: &'t FileTree, path: &str) -> Named<'t> {
    match tree.find(path) {
        None => Named::Nothing,
        Some(FileTreeEntry::Directory(attributes)) => Named::Directory { attributes },
        Some(FileTreeEntry::Symlink(target)) => Named::Symlink { target },
        Some(FileTreeEntry::File(file)) => match tree.file(*file) {
            None => Named::Nothing,
            Some(state) => {
                let content = match &state.content {
                    FileContent::Bytes(image) => Bytes::Image(image),
                    FileContent::Pool(pool) => Bytes::Pool(*pool),
                };
                Named::Regular { content, attributes: &state.attributes }
            }
        },
    }
}

/// A folder of the target's and the private one that stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    pub path: PathBuf,
    pub private: PathBuf,
}

impl Root {
    /// Empty files, one per recorded name, that tell which names are recorded: by [`mark`].
    pub fn marks(&self) -> PathBuf {
        let mut name = self.private.as_os_str().to_owned();
        name.push(".names");
        name.into()
    }
}

/// The name of a recorded name's mark. The probe makes the same one.
fn mark(inside: &[u8]) -> String {
    format!("{:016x}", wire::recover::name_hash(inside))
}

/// The private folders, and what they show.
#[derive(Debug, Default)]
pub struct Space {
    roots: Vec<Root>,
    /// Every recorded name in a root: what it shows, as [`FileTree::identity_of`] has it; none: nothing is known.
    names: BTreeMap<String, Option<u128>>,
    /// Something else may be in the folders.
    stale: bool,
}

/// Which of these folders are roots: those that hold a recorded name, without those inside of others.
pub fn roots(candidates: impl IntoIterator<Item = PathBuf>, names: &[String]) -> Vec<PathBuf> {
    let holds =
        |folder: &PathBuf| folder.parent().is_some() && names.iter().any(|name| Path::new(name).starts_with(folder));
    let mut found: Vec<PathBuf> = candidates.into_iter().filter(holds).filter(|folder| folder.is_dir()).collect();
    found.sort();
    found.dedup();
    let outer = found.clone();
    found.retain(|folder| !outer.iter().any(|other| other != folder && folder.starts_with(other)));
    found
}

impl Space {
    /// Makes folders inside of `place` for these roots and recorded names; names outside of the roots are left out.
    pub fn create(place: &Path, roots: &[PathBuf], names: &[String]) -> io::Result<Space> {
        let mut space = Space { stale: true, ..Space::default() };
        for (number, path) in roots.iter().enumerate() {
            let root = Root { path: path.clone(), private: place.join(number.to_string()) };
            fs::create_dir_all(&root.private)?;
            fs::create_dir_all(root.marks())?;
            for name in names {
                if let Ok(inside) = Path::new(name).strip_prefix(path)
                    && !inside.as_os_str().is_empty()
                {
                    File::create(root.marks().join(mark(inside.as_os_str().as_bytes())))?;
                    space.names.insert(name.clone(), None);
                }
            }
            space.roots.push(root);
        }
        Ok(space)
    }

    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The recorded names that are in a root.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// A run may have changed anything.
    pub fn forget(&mut self) {
        self.stale = true;
    }

    /// Where a name lies.
    pub fn private(&self, name: &str) -> Option<PathBuf> {
        let at = |root: &Root| Some(root.private.join(Path::new(name).strip_prefix(&root.path).ok()?));
        self.roots.iter().find_map(at)
    }

    /// The names that name nothing now.
    pub fn absent(&self) -> Vec<(&Root, PathBuf)> {
        let gone = |name: &&String| self.private(name).is_some_and(|path| fs::symlink_metadata(path).is_err());
        let inside = |name: &'_ String| {
            self.roots.iter().find_map(|root| Some((root, Path::new(name).strip_prefix(&root.path).ok()?.to_owned())))
        };
        self.names.keys().filter(gone).filter_map(inside).collect()
    }

    /// Shows what a tree has. `stand_in` is where a pool's bytes are.
    pub fn show(&mut self, tree: &FileTree, stand_in: &dyn Fn(PoolId) -> Option<PathBuf>) -> io::Result<()> {
        let known: Vec<String> = self.names.keys().cloned().collect();
        // Names beneath a folder that was renamed are in the tree, though no event names them.
        let below = tree.names().map(|(path, _)| path.to_owned()).filter(|path| !self.names.contains_key(path));
        let extra: Vec<String> = below.filter(|path| self.private(path).is_some()).collect();
        if self.stale || !extra.is_empty() {
            self.clear()?;
        }
        let mut wanted: Vec<(&String, u128)> =
            known.iter().chain(&extra).map(|name| (name, tree.identity_of(name))).collect();
        // A folder comes before what is in it.
        wanted.sort();
        let changed: Vec<&String> = wanted
            .iter()
            .filter(|(name, identity)| self.names.get(*name).copied().flatten() != Some(*identity))
            .map(|(name, _)| *name)
            .collect();
        for name in changed.iter().rev() {
            if let Some(private) = self.private(name) {
                remove(&private, matches!(in_tree(tree, name), Named::Directory { .. }))?;
            }
        }
        for name in &changed {
            let Some(private) = self.private(name) else { continue };
            put(&private, &in_tree(tree, name), stand_in)?;
        }
        // Modes last: a folder that nobody may write to must be filled before.
        for name in changed.iter().rev() {
            if let (Some(private), Named::Directory { attributes }) = (self.private(name), in_tree(tree, name)) {
                set_attributes(&private, attributes)?;
            }
        }
        for (name, identity) in &wanted {
            if let Some(shown) = self.names.get_mut(*name) {
                *shown = Some(*identity);
            }
        }
        self.stale = !extra.is_empty();
        Ok(())
    }

    /// As [`show`](Self::show), of single names, each after its folder.
    pub fn put(
        &mut self,
        name: &str,
        named: &Named<'_>,
        stand_in: &dyn Fn(PoolId) -> Option<PathBuf>,
    ) -> io::Result<()> {
        match self.private(name) {
            Some(private) => put(&private, named, stand_in),
            None => Ok(()),
        }
    }

    fn clear(&mut self) -> io::Result<()> {
        for root in &self.roots {
            open_up(&root.private);
            fs::remove_dir_all(&root.private)?;
            fs::create_dir(&root.private)?;
        }
        self.names.values_mut().for_each(|shown| *shown = None);
        self.stale = false;
        Ok(())
    }
}

/// Recovery may have left folders that nobody may enter.
fn open_up(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

fn remove(path: &Path, stays_a_folder: bool) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(found) if found.is_dir() && stays_a_folder => Ok(()),
        Ok(found) if found.is_dir() => {
            open_up(path);
            fs::remove_dir_all(path)
        }
        Ok(_) => fs::remove_file(path),
    }
}

fn put(path: &Path, named: &Named<'_>, stand_in: &dyn Fn(PoolId) -> Option<PathBuf>) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|_| !matches!(named, Named::Nothing)) {
        // A folder that was there before and that nobody changed.
        fs::create_dir_all(parent)?;
    }
    match named {
        Named::Nothing => Ok(()),
        Named::Directory { .. } => match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        },
        Named::Symlink { target } => symlink(target, path),
        Named::Regular { content: Bytes::Pool(pool), attributes } => {
            if let Some(stand_in) = stand_in(*pool) {
                fs::hard_link(stand_in, path)?;
                remove_other_attributes(path, attributes)?;
                set_attributes(path, attributes)?;
            }
            Ok(())
        }
        Named::Regular { content: Bytes::Copy(from), attributes } => {
            fs::copy(from, path)?;
            set_attributes(path, attributes)
        }
        Named::Regular { content: Bytes::Image(image), attributes } => {
            write(path, image)?;
            set_attributes(path, attributes)
        }
    }
}

/// A file with the bytes of an image; zeros are holes.
pub fn write(path: &Path, image: &PoolImage) -> io::Result<()> {
    const PAGE: u64 = 4096;
    let file = File::create(path)?;
    file.set_len(image.len())?;
    for number in image.page_numbers() {
        let start = number * PAGE;
        let inside = image.len().saturating_sub(start).min(PAGE) as usize;
        if let Some(page) = image.page(number) {
            file.write_all_at(&page[..inside], start)?;
        }
    }
    Ok(())
}

/// A stand-in may have those of an earlier crash state.
fn remove_other_attributes(path: &Path, attributes: &Attributes) -> io::Result<()> {
    let c_path = CString::new(path.as_os_str().as_bytes())?;
    let names = crate::slot::attributes(path);
    // Others than `user` are the system's.
    for name in names.split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        if attributes.xattrs.iter().any(|(wanted, _)| wanted.as_bytes() == name) {
            continue;
        }
        let name = CString::new(name)?;
        // SAFETY: C strings.
        if unsafe { libc::lremovexattr(c_path.as_ptr(), name.as_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn set_attributes(path: &Path, attributes: &Attributes) -> io::Result<()> {
    let c_path = CString::new(path.as_os_str().as_bytes())?;
    for (name, value) in &attributes.xattrs {
        let name = CString::new(name.as_bytes())?;
        // SAFETY: C strings, and a value of the length given.
        let done = unsafe { libc::lsetxattr(c_path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    fs::set_permissions(path, fs::Permissions::from_mode(attributes.mode))
}
