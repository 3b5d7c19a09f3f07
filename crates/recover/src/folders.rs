//! Private folders: what a run creates, deletes, renames or changes there is seen by that run only.
//!
//! Each is an overlay over a directory that the program uses: that of a pool, or the working directory.
//! Source: the kernel's Documentation/filesystems/overlayfs.rst. The real directory is the lower one; what a run changes goes to the
//! upper one, which lies in a place of ours.
//! - `userxattr`: marks go into `user.*` attributes, which an ordinary user may write.
//! - `volatile`: recovery's `fsync` need not reach a disk, and the unmount does not sync the whole file system. It
//!   leaves a mark in the work directory that forbids its use again, hence one such directory per run.
//! - `index=off`: the upper directory may still be in use by a namespace that is just dying.
//!
//! What cannot be private: directories with other file systems mounted beneath them (an overlay would hide these).

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use supervise::mounts::{Mount, Mounts, c_path};

use crate::scratch::Scratch;

/// Overlays over directories, the outer ones first.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    layers: Vec<Layer>,
    runs: u64,
}

/// One directory.
#[derive(Debug)]
pub(crate) struct Layer {
    pub dir: PathBuf,
    pub upper: PathBuf,
    scratch: Scratch,
}

impl Folders {
    /// Makes a directory private, with what is changed there kept in `place`.
    pub fn add(&mut self, dir: &Path, place: &Path) -> io::Result<&Layer> {
        if let Some(at) = self.layers.iter().position(|layer| layer.dir == dir) {
            return Ok(&self.layers[at]);
        }
        let scratch = Scratch::inside(place)?;
        let upper = scratch.subdirectory("upper")?;
        self.insert(dir, upper, scratch)
    }

    /// As [`add`](Self::add), with an upper directory that holds something already. It lies in `place`.
    pub fn add_prepared(&mut self, dir: &Path, upper: &Path, place: &Path) -> io::Result<&Layer> {
        self.insert(dir, upper.to_owned(), Scratch::inside(place)?)
    }

    fn insert(&mut self, dir: &Path, upper: PathBuf, scratch: Scratch) -> io::Result<&Layer> {
        if !can_be_private(dir) {
            return Err(io::Error::other("other file systems are mounted beneath the directory"));
        }
        // The merged directory has the upper one's permissions.
        let mode = fs::metadata(dir)?.mode() & 0o1777;
        fs::set_permissions(&upper, fs::Permissions::from_mode(mode | 0o300))?;
        // The outer ones come first: an overlay hides what was mounted beneath it before.
        let depth = |dir: &Path| dir.components().count();
        let at = self.layers.partition_point(|layer| depth(&layer.dir) <= depth(dir));
        self.layers.insert(at, Layer { dir: dir.to_owned(), upper, scratch });
        Ok(&self.layers[at])
    }

    /// As [`add`](Self::add), for a directory that would better be private but need not.
    pub fn try_add(&mut self, dir: &Path, place: &Path) {
        if let Ok(dir) = dir.canonicalize()
            && dir.is_dir()
            && dir.parent().is_some()
        {
            // Without it a run that writes there is told to have written outside of its private folders.
            let _ = self.add(&dir, place);
        }
    }

    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// What to mount for the next run.
    pub fn mounts(&mut self) -> io::Result<Mounts> {
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

    /// Shows a directory of ours as it is, though a private folder lies over it.
    pub fn except(&self, dir: &Path, mounts: &mut Mounts) -> io::Result<()> {
        if self.layers.iter().any(|layer| dir.starts_with(&layer.dir)) {
            let from = CString::new(mounts.hold(dir)?)?;
            mounts.add(Mount::Bind { from, onto: c_path(dir)? });
        }
        Ok(())
    }
}

/// Can the directory be private, as far as other mounts go?
pub(crate) fn can_be_private(dir: &Path) -> bool {
    !hides_mounts(&fs::read("/proc/self/mountinfo").unwrap_or_default(), dir)
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
