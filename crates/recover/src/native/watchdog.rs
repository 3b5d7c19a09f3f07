//! A tiny process that puts a swapped pool back if the host dies before it could.
//!
//! It waits at the end of a liveness pipe whose other end only the host holds: a word means that all is well, the end of the file
//! that the host is gone. It shares the lock of the journal, so that nobody swaps the same pool before it is done.
//!
//! It is a copy of the host made by a bare `clone`, in which another thread may have held the allocator's lock: nothing
//! there may allocate, and only system calls are made.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr;

use supervise::{block_signals, set_signals};

use supervise::mounts::c_path;

/// What to do when the host is gone.
#[derive(Debug)]
pub(super) struct Duty {
    pub pool: CString,
    /// None if there was no pool.
    pub aside: Option<CString>,
    pub image: CString,
    pub journal: CString,
}

impl Duty {
    pub fn new(pool: &Path, aside: Option<&Path>, image: &Path, journal: &Path) -> io::Result<Duty> {
        Ok(Duty {
            pool: c_path(pool)?,
            aside: aside.map(c_path).transpose()?,
            image: c_path(image)?,
            journal: c_path(journal)?,
        })
    }

    /// As [`repair`](super::swap::repair) would. Only makes system calls.
    fn fulfil(&self) {
        let put_back = match &self.aside {
            None => rename(&self.pool, &self.image),
            // Without the original aside nothing was moved yet, or all was put back.
            Some(aside) if !exists(aside) => true,
            Some(aside) => {
                rename(&self.pool, &self.image);
                rename(aside, &self.pool)
            }
        };
        if put_back || self.aside.is_none() {
            // SAFETY: a C string.
            unsafe { libc::unlink(self.journal.as_ptr()) };
        }
    }
}

/// The watchdog of one swapped pool. Dropping it sends it home.
#[derive(Debug)]
pub(super) struct Watchdog {
    pid: i32,
    liveness: File,
}

impl Watchdog {
    pub fn post(duty: &Duty, journal: &File) -> io::Result<Watchdog> {
        let mut ends = [0; 2];
        // SAFETY: a live array of two for the result.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors are new and nobody else owns them.
        let (theirs, ours) = unsafe { (OwnedFd::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
        // A key on the terminal must not end it.
        let before = block_signals();
        // SAFETY: a bare fork whose child never returns from `watch`; the mask is the one that was.
        let pid = unsafe {
            let pid = libc::syscall(libc::SYS_clone, i64::from(libc::SIGCHLD), 0, 0, 0, 0) as i32;
            if pid == 0 {
                watch(duty, theirs.as_raw_fd(), journal.as_raw_fd());
            }
            let error = io::Error::last_os_error();
            set_signals(&before);
            if pid < 0 {
                return Err(error);
            }
            pid
        };
        Ok(Watchdog { pid, liveness: ours })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.liveness.write_all(b".");
        // SAFETY: our own child, for which nobody else waits.
        unsafe { libc::waitpid(self.pid, ptr::null_mut(), 0) };
    }
}

/// What the watchdog does; never returns.
fn watch(duty: &Duty, liveness: i32, journal: i32) -> ! {
    // SAFETY: only system calls. All other descriptors go: among them may be the host's end of another watchdog's pipe.
    unsafe {
        libc::setsid();
        let (low, high) = (liveness.min(journal) as u32, liveness.max(journal) as u32);
        if low > 0 {
            libc::syscall(libc::SYS_close_range, 0, low - 1, 0);
        }
        if high > low + 1 {
            libc::syscall(libc::SYS_close_range, low + 1, high - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, high + 1, u32::MAX, 0);
        let mut word = [0_u8; 1];
        if libc::read(liveness, word.as_mut_ptr().cast(), 1) == 0 {
            duty.fulfil();
        }
        libc::_exit(0)
    }
}

fn rename(from: &CStr, to: &CStr) -> bool {
    // SAFETY: C strings.
    unsafe { libc::rename(from.as_ptr(), to.as_ptr()) == 0 }
}

fn exists(file: &CStr) -> bool {
    // SAFETY: a C string.
    unsafe { libc::access(file.as_ptr(), libc::F_OK) == 0 }
}
