//! Where the private files of a slot lie: a directory in memory, if there is room. It goes away with the slot; that of a process that was
//! killed goes away when somebody else makes one, so that memory does not fill up with what nobody uses.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "fencepost-slot-";
const MEMORY: &str = "/dev/shm";
/// Locked as long as the process lives. Directories without it are not finished.
const LOCK: &str = "lock";

#[derive(Debug)]
pub(crate) struct Place {
    dir: TempDir,
    _lock: File,
}

impl Place {
    /// For files of so many bytes in all. (In containers there is often little memory for them.)
    pub fn new(bytes: u64) -> io::Result<Place> {
        let (memory, disk) = (Path::new(MEMORY), std::env::temp_dir());
        sweep(memory);
        let in_memory = room(memory).unwrap_or(0);
        let is_enough = in_memory >= bytes || in_memory >= room(&disk).unwrap_or(0);
        if !is_enough {
            sweep(&disk);
        }
        let places = if is_enough { [memory, &disk] } else { [&disk, memory] };
        Place::inside(places[0]).or_else(|_| Place::inside(places[1]))
    }

    fn inside(directory: &Path) -> io::Result<Place> {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(directory)?;
        let unfinished = dir.path().join("unfinished");
        let lock = File::create(&unfinished)?;
        lock.lock()?;
        fs::rename(&unfinished, dir.path().join(LOCK))?;
        Ok(Place { dir, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Bytes that are left there.
    pub fn room(&self) -> io::Result<u64> {
        room(self.path())
    }
}

/// Bytes that are left in the file system of a directory.
pub fn room(directory: &Path) -> io::Result<u64> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: a C string, and a place for the answer, which all zeros are a value of.
    unsafe {
        let mut answer: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &raw mut answer) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
    }
}

/// Takes away what killed processes have left. What cannot be looked at is somebody else's.
fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let lock = File::open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_taken_away() {
        let outer = tempfile::tempdir().unwrap();
        let living = Place::inside(outer.path()).unwrap();
        let killed = outer.path().join(format!("{PREFIX}killed"));
        let unfinished = outer.path().join(format!("{PREFIX}unfinished"));
        let other = outer.path().join("other");
        for dir in [&killed, &unfinished, &other] {
            fs::create_dir_all(dir.join("0")).unwrap();
        }
        File::create(killed.join(LOCK)).unwrap();
        File::create(other.join(LOCK)).unwrap();
        sweep(outer.path());
        assert!(!killed.exists());
        assert!(living.path().exists() && unfinished.exists() && other.exists());
    }
}
