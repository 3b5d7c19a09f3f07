//! Temporary folders that go away with the value, and, if the process is killed, when somebody else makes one.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "fencepost-";
/// Locked as long as the process lives. Folders without it are not finished, or not ours.
const LOCK: &str = "lock";

#[derive(Debug)]
pub struct Temporary {
    dir: TempDir,
    _lock: File,
}

impl Temporary {
    /// In the system's directory for such; `purpose` is part of its name.
    pub fn new(purpose: &str) -> io::Result<Temporary> {
        let outer = std::env::temp_dir();
        sweep(&outer);
        Temporary::inside(&outer, purpose)
    }

    pub fn inside(directory: &Path, purpose: &str) -> io::Result<Temporary> {
        let dir = tempfile::Builder::new().prefix(&format!("{PREFIX}{purpose}-")).tempdir_in(directory)?;
        let unfinished = dir.path().join("unfinished");
        let lock = File::create(&unfinished)?;
        lock.lock()?;
        fs::rename(&unfinished, dir.path().join(LOCK))?;
        Ok(Temporary { dir, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // The folder itself goes with the field.
        open_up(self.path());
    }
}

/// Takes away what killed processes have left. What cannot be looked at is somebody else's.
pub fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let lock = File::open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            open_up(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Lets the owner into all directories: an overlay's work directory has mode 000, and a program may have done the same.
pub fn open_up(dir: &Path) {
    let _ = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_taken_away() {
        let outer = tempfile::tempdir().unwrap();
        let living = Temporary::inside(outer.path(), "living").unwrap();
        let killed = outer.path().join("fencepost-check-killed");
        let unfinished = outer.path().join("fencepost-unfinished");
        let other = outer.path().join("other");
        for dir in [&killed, &unfinished, &other] {
            fs::create_dir_all(dir.join("0/work")).unwrap();
        }
        File::create(killed.join(LOCK)).unwrap();
        File::create(other.join(LOCK)).unwrap();
        fs::set_permissions(killed.join("0"), fs::Permissions::from_mode(0o000)).unwrap();
        sweep(outer.path());
        assert!(!killed.exists());
        assert!(living.path().exists() && unfinished.exists() && other.exists());
    }
}
