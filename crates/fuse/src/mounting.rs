//! Where a daemon may mount. In a private mount namespace, nobody else sees the mounts, and they end with the last process
//! in it, even if that is killed. Elsewhere libfuse calls its helper fusermount3.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;
use std::{env, mem, ptr};

/// How daemons get their mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mounting {
    /// In a mount namespace of this process.
    Private,
    /// Through fusermount3, for everybody to see.
    Helper,
}

#[derive(Debug, thiserror::Error)]
pub enum MountingError {
    #[error(
        "there is no /dev/fuse that can be used ({0}); load the kernel's module (`modprobe fuse`), or give the container the device"
    )]
    NoDevice(io::Error),
    #[error(
        "file systems cannot be mounted here: no mount namespace of our own ({0}), and no fusermount3; \
         allow user namespaces, or install fuse3"
    )]
    NoRight(io::Error),
}

/// Takes this process, which must have one thread only, to where it can mount.
pub fn enter() -> Result<Mounting, MountingError> {
    device()?;
    match own_namespace() {
        Ok(()) => Ok(Mounting::Private),
        Err(_) if has_helper() => Ok(Mounting::Helper),
        Err(error) => Err(MountingError::NoRight(error)),
    }
}

/// What [`enter`] would do, tried in another process.
pub fn possible() -> Result<Mounting, MountingError> {
    device()?;
    // SAFETY: the child makes system calls and leaves at once; `own_namespace` allocates, so that this must not be called
    // while other threads run.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = own_namespace().is_ok();
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(i32::from(!done)) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child with a live out-pointer.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    match child > 0 && waited == child && status == 0 {
        true => Ok(Mounting::Private),
        false if has_helper() => Ok(Mounting::Helper),
        false => Err(MountingError::NoRight(io::ErrorKind::PermissionDenied.into())),
    }
}

fn device() -> Result<(), MountingError> {
    let opened = File::options().read(true).write(true).open("/dev/fuse");
    let kind = opened.and_then(|device| device.metadata()).map_err(MountingError::NoDevice)?;
    // Linux, Documentation/admin-guide/devices.txt.
    match kind.file_type().is_char_device() && kind.rdev() == libc::makedev(10, 229) {
        true => Ok(()),
        false => Err(MountingError::NoDevice(io::Error::other("it is another device"))),
    }
}

fn has_helper() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir: PathBuf| dir.join("fusermount3").is_file())
}

fn own_namespace() -> io::Result<()> {
    // SAFETY: these calls cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let flags = if user == 0 { libc::CLONE_NEWNS } else { libc::CLONE_NEWNS | libc::CLONE_NEWUSER };
    // `/proc/self/exe` is a path in the namespace that is left. If that went with its last process, the path would lose the places where
    // its file systems are mounted.
    mem::forget(File::open("/proc/self/ns/mnt")?);
    // SAFETY: a plain system call.
    if unsafe { libc::unshare(flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if user != 0 {
        // Root of the new namespace may mount in it, and so may the programs that it starts.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    }
    // SAFETY: C strings and null pointers, as mount(2) wants them.
    let private =
        unsafe { libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), libc::MS_REC | libc::MS_SLAVE, ptr::null()) };
    if private == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
