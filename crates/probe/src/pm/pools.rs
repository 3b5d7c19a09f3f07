//! The pools of the recording: files by device and inode, numbered in the control area that all processes share.

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use wire::control::{MAX_POOLS, option};
use wire::record::{Header, kind};

use super::glob;
use crate::load::attach;
use crate::refuse;
use crate::ring;
use crate::sys::{nr, raw, sys};
use crate::syscall::standard;
use crate::thread::Thread;

/// The kernel's `struct stat` on x86-64.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Stat {
    pub device: u64,
    pub inode: u64,
    pub links: u64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pad: u32,
    pub rdev: u64,
    pub size: i64,
    rest: [u64; 11],
}

const S_IFMT: u32 = 0o170000;
const S_IFREG: u32 = 0o100000;
const S_IFCHR: u32 = 0o020000;

/// A file, as the kernel tells files apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
}

impl Stat {
    pub fn of(fd: i32) -> Option<Stat> {
        let mut stat = Stat::default();
        // SAFETY: the kernel fills `stat`, which has its layout.
        (unsafe { raw!(nr::FSTAT, fd, &raw mut stat) } == 0).then_some(stat)
    }
    pub fn identity(&self) -> FileIdentity {
        FileIdentity { device: self.device, inode: self.inode }
    }
    pub fn is_regular(&self) -> bool {
        self.mode & S_IFMT == S_IFREG
    }
    /// Does it have a name? A memfd, a deleted file and one made with `O_TMPFILE` have none: no restart would find them.
    pub fn is_named(&self) -> bool {
        self.links != 0
    }
    pub fn is_device(&self) -> bool {
        self.mode & S_IFMT == S_IFCHR
    }
}

/// Absolute path of an open file, as the kernel knows it; empty if it cannot tell.
pub fn path_of(fd: i32) -> Vec<u8> {
    let link = format!("/proc/self/fd/{fd}\0");
    let mut path = alloc::vec![0u8; 4096];
    // SAFETY: the kernel writes at most `path.len()` bytes into `path`.
    let got = unsafe { raw!(nr::READLINK, link.as_ptr(), path.as_mut_ptr(), path.len()) };
    path.truncate(got.max(0) as usize);
    if let Some(name) = path.strip_suffix(b" (deleted)") {
        let len = name.len();
        path.truncate(len);
    }
    path
}

/// Is any file a pool yet?
pub fn any() -> bool {
    ring::control().pool_count.load(Ordering::Acquire) != 0
}

/// The number of the pool that is this file.
pub fn find(file: FileIdentity) -> Option<u32> {
    let control = ring::control();
    let count = control.pool_count.load(Ordering::Acquire) as usize;
    let same = |p: &&wire::control::PoolFile| {
        p.inode.load(Ordering::Relaxed) == file.inode && p.device.load(Ordering::Relaxed) == file.device
    };
    control.pools[..count].iter().position(|p| same(&p)).map(|at| at as u32)
}

/// The pools on a device; of any if there is none.
pub fn on_device(device: Option<u64>) -> impl Iterator<Item = u32> {
    let control = ring::control();
    let count = control.pool_count.load(Ordering::Acquire) as usize;
    let there = move |pool: &usize| device.is_none_or(|d| control.pools[*pool].device.load(Ordering::Relaxed) == d);
    (0..count).filter(there).map(|pool| pool as u32)
}

/// The pool behind a descriptor, if it is one. Costs nothing while there is no pool.
pub fn of_fd(fd: i32) -> Option<(u32, Stat)> {
    if !any() {
        return None;
    }
    if standard::is_standard(fd) && find(standard::file_behind(fd)?).is_none() {
        return None;
    }
    let stat = Stat::of(fd)?;
    find(stat.identity()).map(|pool| (pool, stat))
}

/// The file's new length, if it changed since the last look.
pub fn new_len(pool: u32, stat: &Stat) -> Option<u64> {
    let size = stat.size as u64;
    let before = ring::control().pools[pool as usize].len.swap(size, Ordering::Relaxed);
    (before != size).then_some(size)
}

/// Can this file be a pool at all?
fn eligible(fd: i32, stat: &Stat) -> bool {
    stat.is_regular() || (stat.is_device() && path_of(fd).starts_with(b"/dev/dax"))
}

/// A file was opened: with `--pm` it becomes a pool now if its path matches.
pub fn opened(thread: &mut Thread, fd: i32) {
    if crate::cover::on() {
        return created(fd);
    }
    if ring::control().glob_count == 0 || crate::recover::on() {
        return;
    }
    let Some(stat) = Stat::of(fd) else { return };
    if !eligible(fd, &stat) || find(stat.identity()).is_some() {
        return;
    }
    let path = path_of(fd);
    if glob::wants(&path) {
        add(thread, fd, &stat, &path);
    }
}

/// With coverage a run may begin without a pool, and make it: the file under its stand-in's path is the pool from now on.
fn created(fd: i32) {
    let Some(stat) = Stat::of(fd) else { return };
    let path = path_of(fd);
    if let Some(pool) = crate::recover::paths::pool_at(&path) {
        let own = &ring::control().pools[pool];
        own.len.store(stat.size as u64, Ordering::Relaxed);
        own.device.store(stat.device, Ordering::Relaxed);
        own.inode.store(stat.inode, Ordering::Relaxed);
        crate::recover::notes::raise(wire::recover::flag::FILES_CHANGED);
    }
}

/// The pool that a shared mapping of `fd` shows, if it is one; it may become one by being mapped.
pub fn mapped(thread: &mut Thread, fd: i32, writable: bool) -> Option<u32> {
    let by_default = ring::control().options & option::PM_DEFAULT != 0;
    if by_default && !writable && !any() {
        return None;
    }
    let stat = Stat::of(fd)?;
    if let Some(pool) = find(stat.identity()) {
        return Some(pool);
    }
    // The pools of a recovery run are known beforehand.
    if (by_default && !(writable && stat.is_named())) || crate::recover::on() || !eligible(fd, &stat) {
        return None;
    }
    let path = path_of(fd);
    // With `--pm` the file may have been opened before the recording.
    (by_default || glob::wants(&path)).then(|| add(thread, fd, &stat, &path))
}

/// Makes a file a pool: the host gets a descriptor and saves the content before anything else happens.
fn add(thread: &mut Thread, fd: i32, stat: &Stat, path: &[u8]) -> u32 {
    let mut order = ring::order(thread);
    // Another process may have been faster.
    if let Some(pool) = find(stat.identity()) {
        return pool;
    }
    let control = ring::control();
    let number = control.pool_count.load(Ordering::Relaxed);
    if number as usize == MAX_POOLS {
        refuse!(order.thread(), "more than {MAX_POOLS} pools; name the ones that matter with --pm");
    }
    control.pools[number as usize].device.store(stat.device, Ordering::Relaxed);
    control.pools[number as usize].inode.store(stat.inode, Ordering::Relaxed);
    control.pools[number as usize].len.store(stat.size as u64, Ordering::Relaxed);
    control.pool_count.store(number + 1, Ordering::Release);
    send(number, fd);
    let size = stat.size as u64;
    let header = Header { kind: kind::POOL, address: number as u64, ..Header::default() };
    let path = &path[..path.len().min(4000)];
    order.put(header, &[&stat.device.to_le_bytes(), &stat.inode.to_le_bytes(), &size.to_le_bytes(), path]);
    let request = order.ask();
    ring::ring_doorbell();
    // Nobody may change the pool until it is saved: the order lock stays ours.
    ring::wait_for_answer(request);
    number
}

/// Passes a descriptor to the host, with the pool's number.
fn send(number: u32, fd: i32) {
    const SOL_SOCKET: u32 = 1;
    const SCM_RIGHTS: u32 = 1;
    #[repr(C)]
    struct Control {
        len: u64,
        level: u32,
        kind: u32,
        fd: i32,
        pad: u32,
    }
    #[repr(C)]
    struct Message {
        name: u64,
        name_len: u64,
        vector: *const (u64, u64),
        vectors: u64,
        control: *const Control,
        control_len: u64,
        flags: u64,
    }
    let control = Control { len: 20, level: SOL_SOCKET, kind: SCM_RIGHTS, fd, pad: 0 };
    let vector = (&raw const number as u64, 4u64);
    let message = Message {
        name: 0,
        name_len: 0,
        vector: &raw const vector,
        vectors: 1,
        control: &raw const control,
        control_len: size_of::<Control>() as u64,
        flags: 0,
    };
    const MSG_NOSIGNAL: u64 = 0x4000;
    sys!(nr::SENDMSG, attach::socket_fd(), &raw const message, MSG_NOSIGNAL);
}
