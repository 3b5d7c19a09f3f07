//! The pool's directory, privately: recovery may delete, rename and create files there, and only this run sees it.
//!
//! The image is in the upper directory of a private folder under the pool's name. Where the files beside the pools are known as a crash
//! left them, the upper directory is the one that holds them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use supervise::mounts::{Mounts, c_path};

use super::placement::{Placement, Pool, link_or_copy};
use crate::folders::Folders;
use crate::space::{Root, Space};

#[derive(Debug)]
pub(super) struct Overlay {
    folders: Folders,
    /// For each pool where its content is.
    contents: Vec<PathBuf>,
    /// Where what runs change is kept.
    place: PathBuf,
}

/// A folder of the target's, and a private one with what a crash left of it: both pools and other files.
#[derive(Clone, Debug)]
pub(super) struct PrivateFolder {
    dir: PathBuf,
    upper: PathBuf,
    /// Names inside that the real folder may have, and the crash has not left.
    absent: Vec<PathBuf>,
}

impl PrivateFolder {
    pub fn of(space: &Space) -> Vec<PrivateFolder> {
        let absent = space.absent();
        let of = |root: &Root| PrivateFolder {
            dir: root.path.clone(),
            upper: root.private.clone(),
            absent: absent.iter().filter(|(of, _)| *of == root).map(|(_, name)| name.clone()).collect(),
        };
        space.roots().iter().map(of).collect()
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Does the crash leave nothing under this path?
    pub fn lacks(&self, path: &Path) -> bool {
        path.strip_prefix(&self.dir).is_ok_and(|inside| self.absent.iter().any(|name| name == inside))
    }

    /// Makes the overlay hide what is absent (overlayfs.rst, "whiteouts and opaque directories").
    fn hide(&self) -> io::Result<()> {
        for name in self.absent.iter().filter(|name| fs::symlink_metadata(self.dir.join(name)).is_ok()) {
            let at = self.upper.join(name);
            // Where its folder is absent too, that hides all.
            if fs::symlink_metadata(at.parent().unwrap_or(&self.upper)).is_ok_and(|found| found.is_dir()) {
                let path = c_path(&at)?;
                // SAFETY: a C string.
                if unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR, 0) } != 0 {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::AlreadyExists {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Overlay {
    pub fn prepare(pools: &[Pool], private: &[PrivateFolder]) -> io::Result<Overlay> {
        let (mut folders, mut contents, mut place) = (Folders::default(), Vec::new(), PathBuf::new());
        for folder in private {
            place = folder.upper.parent().unwrap_or(Path::new("/")).to_owned();
            folders.add_prepared(&folder.dir, &folder.upper, &place)?;
            // Names in folders that nobody changed: the upper one takes the place of the real one's attributes.
            folder.hide()?;
        }
        for pool in pools {
            if let Some(folder) = private.iter().find(|folder| pool.path.starts_with(&folder.dir)) {
                // It is there already, under the name that it had.
                let inside = pool.path.strip_prefix(&folder.dir).unwrap_or(&pool.path);
                contents.push(folder.upper.join(inside));
                continue;
            }
            // There the image can be linked into the upper directory.
            place = pool.content.parent().unwrap_or(Path::new("/")).to_owned();
            let layer = folders.add(&pool.dir, &place)?;
            let content = layer.upper.join(pool.path.file_name().expect("a pool has a name"));
            link_or_copy(&pool.content, &content)?;
            contents.push(content);
        }
        Ok(Overlay { folders, contents, place })
    }
}

impl Placement for Overlay {
    fn mounts(&mut self, directories: &[PathBuf]) -> io::Result<Mounts> {
        directories.iter().for_each(|dir| self.folders.try_add(dir, &self.place));
        self.folders.mounts()
    }

    fn content(&self, pool: usize) -> PathBuf {
        self.contents[pool].clone()
    }
}
