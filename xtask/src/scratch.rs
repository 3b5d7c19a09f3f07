//! A folder for a chore's files, gone when the chore ends.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use anyhow::Context as _;

#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// In memory where that is possible: PM is simulated by files on a tmpfs, and a disk would distort the figures.
    pub fn new(chore: &str) -> anyhow::Result<Scratch> {
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() { shm.to_owned() } else { env::temp_dir() };
        let folder = parent.join(format!("fencepost-{chore}-{}", process::id()));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Scratch(folder))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// An empty folder of this name in it.
    pub fn fresh(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.0.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
