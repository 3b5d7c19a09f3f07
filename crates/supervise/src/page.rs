//! Memory that a supervisor and its host share, for what the supervisor tells.

use std::io;
use std::ptr::{self, NonNull};

/// What may lie in a [`SharedPage`].
///
/// # Safety
/// The type has atomics only, and all bytes zero is one of its values.
pub unsafe trait ZeroedAtomics {}

/// Mapped until it is dropped; a process that was cloned in between has its own mapping of the same memory.
#[derive(Debug)]
pub struct SharedPage<T: ZeroedAtomics>(NonNull<T>);

impl<T: ZeroedAtomics> SharedPage<T> {
    pub fn create() -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping.
        let page = unsafe { libc::mmap(ptr::null_mut(), size_of::<T>(), access, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(SharedPage(NonNull::new(page.cast()).expect("mmap never returns null")))
    }

    pub fn get(&self) -> &T {
        // SAFETY: mapped until drop, zeroed by the kernel, and `T` has atomics only.
        unsafe { self.0.as_ref() }
    }

    pub fn as_ptr(&self) -> *const T {
        self.0.as_ptr()
    }
}

impl<T: ZeroedAtomics> Drop for SharedPage<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping of `create`.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<T>()) };
    }
}

// SAFETY: the page holds atomics only.
unsafe impl<T: ZeroedAtomics> Send for SharedPage<T> {}
// SAFETY: as above.
unsafe impl<T: ZeroedAtomics> Sync for SharedPage<T> {}
