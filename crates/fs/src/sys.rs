//! System calls on files, one function each, which gives the result or the error.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::errno::Errno;

pub type Result<T> = std::result::Result<T, Errno>;

/// A path as the kernel takes it.
pub fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno(libc::EINVAL))
}

fn done(value: i32) -> Result<i32> {
    if value < 0 { Err(Errno::last()) } else { Ok(value) }
}

fn counted(value: isize) -> Result<usize> {
    usize::try_from(value).map_err(|_| Errno::last())
}

pub fn open(path: &CStr, flags: i32, mode: u32) -> Result<OwnedFd> {
    // SAFETY: a C string and numbers; the descriptor is new and nobody else owns it.
    done(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, mode) })
        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Calls that take one path and some numbers.
pub fn mkdir(path: &CStr, mode: u32) -> Result<()> {
    // SAFETY: a C string and a number.
    done(unsafe { libc::mkdir(path.as_ptr(), mode) }).map(drop)
}

pub fn rmdir(path: &CStr) -> Result<()> {
    // SAFETY: a C string.
    done(unsafe { libc::rmdir(path.as_ptr()) }).map(drop)
}

pub fn unlink(path: &CStr) -> Result<()> {
    // SAFETY: a C string.
    done(unsafe { libc::unlink(path.as_ptr()) }).map(drop)
}

pub fn link(from: &CStr, to: &CStr) -> Result<()> {
    // SAFETY: two C strings.
    done(unsafe { libc::link(from.as_ptr(), to.as_ptr()) }).map(drop)
}

pub fn symlink(target: &CStr, name: &CStr) -> Result<()> {
    // SAFETY: two C strings.
    done(unsafe { libc::symlink(target.as_ptr(), name.as_ptr()) }).map(drop)
}

pub fn rename(from: &CStr, to: &CStr) -> Result<()> {
    // SAFETY: two C strings.
    done(unsafe { libc::rename(from.as_ptr(), to.as_ptr()) }).map(drop)
}

pub fn truncate(path: &CStr, len: u64) -> Result<()> {
    // SAFETY: a C string and a number.
    done(unsafe { libc::truncate(path.as_ptr(), len as i64) }).map(drop)
}

pub fn ftruncate(fd: &OwnedFd, len: u64) -> Result<()> {
    // SAFETY: an open descriptor and a number.
    done(unsafe { libc::ftruncate(fd.as_raw_fd(), len as i64) }).map(drop)
}

pub fn chmod(path: &CStr, mode: u32) -> Result<()> {
    // SAFETY: a C string and a number.
    done(unsafe { libc::chmod(path.as_ptr(), mode) }).map(drop)
}

pub fn chown(path: &CStr, user: u32, group: u32) -> Result<()> {
    // SAFETY: a C string and numbers.
    done(unsafe { libc::lchown(path.as_ptr(), user, group) }).map(drop)
}

pub fn fallocate(fd: &OwnedFd, mode: i32, at: u64, len: u64) -> Result<()> {
    // SAFETY: an open descriptor and numbers.
    done(unsafe { libc::fallocate(fd.as_raw_fd(), mode, at as i64, len as i64) }).map(drop)
}

pub fn fsync(fd: &OwnedFd) -> Result<()> {
    // SAFETY: an open descriptor.
    done(unsafe { libc::fsync(fd.as_raw_fd()) }).map(drop)
}

pub fn fdatasync(fd: &OwnedFd) -> Result<()> {
    // SAFETY: an open descriptor.
    done(unsafe { libc::fdatasync(fd.as_raw_fd()) }).map(drop)
}

/// Of the one file system that the descriptor is on, not of the whole machine.
pub fn syncfs(fd: &OwnedFd) -> Result<()> {
    // SAFETY: an open descriptor.
    done(unsafe { libc::syncfs(fd.as_raw_fd()) }).map(drop)
}

pub fn pwrite(fd: &OwnedFd, bytes: &[u8], at: u64) -> Result<usize> {
    // SAFETY: the buffer is live and as long as we say.
    counted(unsafe { libc::pwrite(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), at as i64) })
}

pub fn pread(fd: &OwnedFd, bytes: &mut [u8], at: u64) -> Result<usize> {
    // SAFETY: the buffer is live and as long as we say.
    counted(unsafe { libc::pread(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), at as i64) })
}

pub fn setxattr(path: &CStr, name: &CStr, value: &[u8]) -> Result<()> {
    // SAFETY: C strings, and a live buffer as long as we say.
    done(unsafe { libc::lsetxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) }).map(drop)
}

pub fn removexattr(path: &CStr, name: &CStr) -> Result<()> {
    // SAFETY: C strings.
    done(unsafe { libc::lremovexattr(path.as_ptr(), name.as_ptr()) }).map(drop)
}

/// The names of all attributes, without their final zeros.
pub fn listxattr(path: &CStr) -> Result<Vec<Vec<u8>>> {
    let mut names = vec![0u8; 64 << 10];
    // SAFETY: a C string, and a live buffer as long as we say.
    let len = counted(unsafe { libc::llistxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) })?;
    Ok(names[..len].split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
}

pub fn getxattr(path: &CStr, name: &CStr) -> Result<Vec<u8>> {
    let mut value = vec![0u8; 64 << 10];
    // SAFETY: C strings, and a live buffer as long as we say.
    let len = unsafe { libc::lgetxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    value.truncate(counted(len)?);
    Ok(value)
}

pub fn readlink(path: &CStr) -> Result<Vec<u8>> {
    let mut target = vec![0u8; libc::PATH_MAX as usize];
    // SAFETY: a C string, and a live buffer as long as we say.
    let len = counted(unsafe { libc::readlink(path.as_ptr(), target.as_mut_ptr().cast(), target.len()) })?;
    target.truncate(len);
    Ok(target)
}

pub fn lstat(path: &CStr) -> Result<libc::stat> {
    // SAFETY: zero is a valid `stat`, which the call fills.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        done(libc::lstat(path.as_ptr(), &raw mut stat)).map(|_| stat)
    }
}

pub fn fstat(fd: &OwnedFd) -> Result<libc::stat> {
    // SAFETY: zero is a valid `stat`, which the call fills.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        done(libc::fstat(fd.as_raw_fd(), &raw mut stat)).map(|_| stat)
    }
}

/// Stores bytes through a shared mapping of the file, and `msync`s it. The range must be within the file.
pub fn store_mapped(fd: &OwnedFd, bytes: &[u8], at: u64) -> Result<()> {
    const PAGE: u64 = 4096;
    let start = at / PAGE * PAGE;
    let len = (at - start) as usize + bytes.len();
    // SAFETY: a new shared mapping at a place of the kernel's choice; the copy stays inside it, and it is unmapped once.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let map = libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, fd.as_raw_fd(), start as i64);
        if map == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let to = map.cast::<u8>().add((at - start) as usize);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        let synced = done(libc::msync(map, len, libc::MS_SYNC)).map(drop);
        libc::munmap(map, len);
        synced
    }
}

/// Names in a directory, without `.` and `..`, in the order of the file system.
pub fn names(path: &Path) -> Result<Vec<Vec<u8>>> {
    let errno = |error: std::io::Error| Errno(error.raw_os_error().unwrap_or(libc::EIO));
    let entries = std::fs::read_dir(path).map_err(errno)?;
    entries.map(|entry| entry.map(|entry| entry.file_name().as_bytes().to_vec()).map_err(errno)).collect()
}
