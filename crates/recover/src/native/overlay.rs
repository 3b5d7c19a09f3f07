//! The pool's directory, privately: recovery may delete, rename and create files there, and only this run sees it.
//!
//! Source: the kernel's Documentation/filesystems/overlayfs.rst. The image is in the upper directory under the pool's
//! name, the real directory is the lower one.
//! - `userxattr`: marks go into `user.*` attributes, which an ordinary user may write.
//! - `volatile`: recovery's `fsync` need not reach a disk, and the unmount does not sync the whole file system. It
//!   leaves a mark in the work directory that forbids its use again, hence one such directory per run.
//! - `index=off`: the upper directory may still be in use by a namespace that is just dying.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::placement::{Placement, Pool, link_or_copy};
use super::scratch::Scratch;
use crate::space::{Root, Space};
use supervise::mounts::{Mount, Mounts, c_path};

#[derive(Debug)]
pub(super) struct Overlay {
    layers: Vec<Layer>,
    /// For each pool where its content is.
    contents: Vec<PathBuf>,
    runs: u64,
}

/// One directory that holds pools, or other files that a crash left.
#[derive(Debug)]
struct Layer {
    dir: PathBuf,
    upper: PathBuf,
    scratch: Scratch,
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
        let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mut overlay = Overlay { layers: Vec::new(), contents: Vec::new(), runs: 0 };
        for folder in private {
            if hides_mounts(&table, &folder.dir) {
                return Err(io::Error::other("other file systems are mounted beneath a folder with recorded files"));
            }
            let scratch = Scratch::beside(&folder.upper)?;
            let mode = fs::metadata(&folder.dir)?.mode() & 0o1777;
            fs::set_permissions(&folder.upper, fs::Permissions::from_mode(mode | 0o300))?;
            // Names in folders that nobody changed: the upper one takes the place of the real one's attributes.
            folder.hide()?;
            overlay.layers.push(Layer { dir: folder.dir.clone(), upper: folder.upper.clone(), scratch });
        }
        for pool in pools {
            if let Some(folder) = private.iter().find(|folder| pool.path.starts_with(&folder.dir)) {
                // It is there already, under the name that it had.
                let inside = pool.path.strip_prefix(&folder.dir).unwrap_or(&pool.path);
                overlay.contents.push(folder.upper.join(inside));
                continue;
            }
            if hides_mounts(&table, &pool.dir) {
                return Err(io::Error::other("other file systems are mounted beneath the pool's directory"));
            }
            let layer = overlay.layer(pool)?;
            let content = layer.upper.join(pool.path.file_name().expect("a pool has a name"));
            link_or_copy(&pool.content, &content)?;
            overlay.contents.push(content);
        }
        // The outer ones first: an overlay hides what was mounted beneath it before.
        overlay.layers.sort_by_key(|layer| layer.dir.components().count());
        Ok(overlay)
    }

    fn layer(&mut self, pool: &Pool) -> io::Result<&Layer> {
        if let Some(at) = self.layers.iter().position(|layer| layer.dir == pool.dir) {
            return Ok(&self.layers[at]);
        }
        let scratch = Scratch::beside(&pool.content)?;
        let upper = scratch.subdirectory("upper")?;
        // The merged directory has the upper one's permissions.
        let mode = fs::metadata(&pool.dir)?.mode() & 0o1777;
        fs::set_permissions(&upper, fs::Permissions::from_mode(mode | 0o300))?;
        self.layers.push(Layer { dir: pool.dir.clone(), upper, scratch });
        Ok(self.layers.last().expect("just pushed"))
    }
}

impl Placement for Overlay {
    fn mounts(&mut self) -> io::Result<Mounts> {
        self.runs += 1;
        let mut mounts = Mounts::default();
        for layer in &self.layers {
            let work = layer.scratch.subdirectory(&format!("work{}", self.runs))?;
            let lower = mounts.hold(&layer.dir)?;
            let upper = mounts.hold(&layer.upper)?;
            let work = mounts.hold(&work)?;
            let options = ["userxattr,index=off,volatile", "userxattr,index=off", "index=off"]
                .map(|more| format!("lowerdir={lower},upperdir={upper},workdir={work},{more}"))
                .map(|options| CString::new(options).expect("no zero byte in numbers"));
            mounts.add(Mount::Overlay { dir: c_path(&layer.dir)?, options: options.into() });
        }
        Ok(mounts)
    }

    fn content(&self, pool: usize) -> PathBuf {
        self.contents[pool].clone()
    }
}

/// An overlay does not show what is mounted beneath its lower directory.
fn hides_mounts(table: &[u8], dir: &Path) -> bool {
    table.split(|&byte| byte == b'\n').filter_map(mount_point).any(|at| at != dir && at.starts_with(dir))
}

/// The fifth field of a line of `/proc/self/mountinfo`; blanks in it are written as `\040` (proc_pid_mountinfo(5)).
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let field = line.split(|&byte| byte == b' ').nth(4)?;
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| first == b'\\').and_then(|digits| str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(byte);
                rest = &after[3..];
            }
            None => {
                path.push(first);
                rest = after;
            }
        }
    }
    Some(std::ffi::OsString::from_vec(path).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_beneath_the_pools_directory_are_noticed() {
        let table = b"22 1 0:20 / / rw - ext4 x rw\n30 22 0:21 / /mnt/a\\040b/c rw - tmpfs x rw\n";
        assert!(hides_mounts(table, Path::new("/mnt/a b")));
        assert!(hides_mounts(table, Path::new("/")));
        assert!(!hides_mounts(table, Path::new("/mnt/a b/c")));
        assert!(!hides_mounts(table, Path::new("/mnt/a")));
    }
}
