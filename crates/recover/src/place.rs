//! Where the private files of a slot lie: a directory in memory, if there is room. It goes away with the slot; that of a process that was
//! killed goes away when somebody else makes one, so that memory does not fill up with what nobody uses.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use supervise::temporary::{Temporary, sweep};

const MEMORY: &str = "/dev/shm";
const PURPOSE: &str = "slot";

#[derive(Debug)]
pub(crate) struct Place(Temporary);

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
        Temporary::inside(places[0], PURPOSE).or_else(|_| Temporary::inside(places[1], PURPOSE)).map(Place)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
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
