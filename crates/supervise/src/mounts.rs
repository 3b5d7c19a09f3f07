//! Mounts that the supervisor makes before the program starts; prepared by the host, which may allocate.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// One mount of a private file or directory over the public one.
#[derive(Debug)]
pub enum Mount {
    /// An overlay on `dir`; the first of the options that the kernel takes.
    Overlay {
        dir: CString,
        options: Vec<CString>,
    },
    Bind {
        from: CString,
        onto: CString,
    },
}

/// What to mount, in order, and the files that the paths in it name as `/proc/self/fd/N`.
#[derive(Debug, Default)]
pub struct Mounts {
    list: Vec<Mount>,
    held: Vec<Held>,
}

/// A file and a number for its descriptor.
#[derive(Debug)]
struct Held {
    file: CString,
    /// The host's descriptor of the file only keeps the number free: mount(2) refuses a file that was opened in another
    /// mount namespace, so the supervisor must open it again.
    number: OwnedFd,
}

impl Mounts {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn add(&mut self, mount: Mount) {
        self.list.push(mount);
    }

    /// A path for `file` that no mount of the list redirects, and that needs no quoting among mount options.
    pub fn hold(&mut self, file: &Path) -> io::Result<String> {
        let file = c_path(file)?;
        let number = open(&file);
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        let number = unsafe { OwnedFd::from_raw_fd(number) };
        let name = format!("/proc/self/fd/{}", number.as_raw_fd());
        self.held.push(Held { file, number });
        Ok(name)
    }

    /// Makes all mounts, or fails with `errno`. Only makes system calls; called in the supervisor's mount namespace.
    pub(crate) fn make(&self) -> bool {
        self.held.iter().all(Held::open_here) && self.list.iter().all(Mount::make)
    }

    /// Takes overlays away again, so that their upper directories are free when the supervisor has ended: a namespace that
    /// dies lets go of its mounts a little later. Only makes system calls.
    pub(crate) fn unmake(&self) {
        self.list.iter().rev().for_each(Mount::unmake);
    }
}

impl Held {
    fn open_here(&self) -> bool {
        let here = open(&self.file);
        // SAFETY: plain system calls; the number is one that the host reserved in this copy of its table.
        here >= 0
            && unsafe { libc::dup3(here, self.number.as_raw_fd(), libc::O_CLOEXEC) >= 0 && libc::close(here) == 0 }
    }
}

fn open(file: &CStr) -> i32 {
    // SAFETY: a C string.
    unsafe { libc::open(file.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) }
}

impl Mount {
    fn make(&self) -> bool {
        match self {
            Mount::Overlay { dir, options } => {
                options.iter().any(|options| mount(c"overlay", dir, c"overlay", 0, options.as_ptr()))
            }
            Mount::Bind { from, onto } => mount(from, onto, c"", libc::MS_BIND, ptr::null()),
        }
    }

    fn unmake(&self) {
        if let Mount::Overlay { dir, .. } = self {
            // SAFETY: a C string.
            unsafe { libc::umount2(dir.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

/// mount(2). `data` is null or a C string.
pub(crate) fn mount(from: &CStr, onto: &CStr, kind: &CStr, flags: u64, data: *const libc::c_char) -> bool {
    // SAFETY: C strings; `data` is null or one too.
    unsafe { libc::mount(from.as_ptr(), onto.as_ptr(), kind.as_ptr(), flags, data.cast()) == 0 }
}

pub fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}
