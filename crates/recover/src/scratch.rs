//! A private directory that goes away with what a recovery left in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use supervise::temporary::open_up;
use tempfile::TempDir;

#[derive(Debug)]
pub(crate) struct Scratch {
    dir: Option<TempDir>,
}

impl Scratch {
    /// In this directory.
    pub fn inside(dir: &Path) -> io::Result<Scratch> {
        let dir = tempfile::Builder::new().prefix(".fencepost-").tempdir_in(dir)?;
        Ok(Scratch { dir: Some(dir) })
    }

    pub fn path(&self) -> &Path {
        self.dir.as_ref().expect("there until drop").path()
    }

    /// A new directory in it.
    pub fn subdirectory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path().join(name);
        fs::create_dir(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An overlay's work directory has mode 000, and recovery may have done the same.
        open_up(self.path());
        if let Some(dir) = self.dir.take() {
            // What cannot be removed stays behind; there is nobody to tell, and nothing depends on it.
            drop(dir.close());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn goes_away_with_directories_that_nobody_may_enter() {
        let outer = tempfile::tempdir().unwrap();
        let scratch = Scratch::inside(outer.path()).unwrap();
        let closed = scratch.subdirectory("work").unwrap();
        fs::create_dir(closed.join("inner")).unwrap();
        fs::write(closed.join("inner/file"), b"x").unwrap();
        fs::set_permissions(closed.join("inner"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        drop(scratch);
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }
}
