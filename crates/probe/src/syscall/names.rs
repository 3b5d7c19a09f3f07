//! Changes to names, and to files that are not pools: a crash image includes them.
//!
//! The host inspects the files itself, before and after a call that changes names: the probe only says which call it is, keeps other tasks
//! from changing names meanwhile, and waits. Data written through descriptors is sent to the host, as for pools.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use wire::control::{FILE_SLOTS, option};
use wire::record::{Header, file, kind};

use super::dispatch::Call;
use super::{buffers, event};
use crate::load::user;
use crate::pm::pools::{self, Stat};
use crate::ring::{self, Order, control};
use crate::sys::{nr, raw, sys};
use crate::thread::Thread;

const AT_FDCWD: i32 = -100;
const AT_REMOVEDIR: u64 = 0x200;
const AT_EMPTY_PATH: u64 = 0x1000;
const O_CREAT: u64 = 0o100;
const O_EXCL: u64 = 0o200;
const O_TRUNC: u64 = 0o1000;
const O_TMPFILE: u64 = 0o20000000;
const RENAME_EXCHANGE: u64 = 2;
const S_IFMT: u64 = 0o170000;
const S_IFREG: u64 = 0o100000;

/// Are changes of files recorded?
pub fn on() -> bool {
    control().options & option::FILES != 0
}

/// A call that changes names, with absolute paths.
#[derive(Debug)]
pub struct NameCall {
    op: u8,
    path: Vec<u8>,
    other: Vec<u8>,
}

impl NameCall {
    fn one(op: u8, path: Option<Vec<u8>>) -> Option<NameCall> {
        Some(NameCall { op, path: path.filter(|path| is_recorded(path))?, other: Vec::new() })
    }

    fn two(op: u8, path: Option<Vec<u8>>, other: Option<Vec<u8>>) -> Option<NameCall> {
        let (path, other) = (path?, other?);
        (is_recorded(&path) || is_recorded(&other)).then_some(NameCall { op, path, other })
    }

    fn xattr(op: u8, path: Option<Vec<u8>>, name: u64) -> Option<NameCall> {
        let other = user::c_string(name)?;
        Some(NameCall { other, ..NameCall::one(op, path)? })
    }
}

/// Not what the kernel makes up.
fn is_recorded(path: &[u8]) -> bool {
    let system = [&b"/proc/"[..], b"/sys/", b"/dev/"].iter().any(|folder| path.starts_with(folder));
    path.starts_with(b"/") && (!system || path.starts_with(b"/dev/shm/")) && !path.starts_with(b"/memfd:")
}

/// The path that a pointer names, seen from a directory.
fn path_at(directory: i32, pointer: u64) -> Option<Vec<u8>> {
    let path = user::c_string(pointer)?;
    if path.starts_with(b"/") {
        return Some(path);
    }
    if path.is_empty() {
        return None;
    }
    let mut whole = if directory == AT_FDCWD { current_directory() } else { pools::path_of(directory) };
    whole.push(b'/');
    whole.extend_from_slice(&path);
    Some(whole)
}

fn current_directory() -> Vec<u8> {
    let mut path = alloc::vec![0u8; 4096];
    // SAFETY: the kernel writes at most `path.len()` bytes into `path`.
    let got = unsafe { raw!(nr::GETCWD, path.as_mut_ptr(), path.len()) };
    // With its end.
    path.truncate((got - 1).max(0) as usize);
    path
}

fn behind(fd: i32) -> Option<Vec<u8>> {
    Some(pools::path_of(fd)).filter(|path| !path.is_empty())
}

/// Carries out a call that changes names; `None`: it is another one.
pub fn answer(thread: &mut Thread, call: Call) -> Option<i64> {
    if !on() || !is_of_names(call.nr) {
        return None;
    }
    let step = step(call)?;
    Some(carry_out(thread, call, &step))
}

fn is_of_names(number: u64) -> bool {
    matches!(
        number,
        nr::UNLINK
            | nr::UNLINKAT
            | nr::RMDIR
            | nr::RENAME
            | nr::RENAMEAT
            | nr::RENAMEAT2
            | nr::LINK
            | nr::LINKAT
            | nr::MKDIR
            | nr::MKDIRAT
            | nr::SYMLINK
            | nr::SYMLINKAT
            | nr::MKNOD
            | nr::MKNODAT
            | nr::CHMOD
            | nr::FCHMOD
            | nr::FCHMODAT
            | nr::FCHMODAT2
            | nr::SETXATTR
            | nr::LSETXATTR
            | nr::FSETXATTR
            | nr::REMOVEXATTR
            | nr::LREMOVEXATTR
            | nr::FREMOVEXATTR
    )
}

fn step(call: Call) -> Option<NameCall> {
    let [a0, a1, a2, a3, a4, _] = call.args;
    let here = |pointer| path_at(AT_FDCWD, pointer);
    let at = |directory: u64, pointer| path_at(directory as i32, pointer);
    match call.nr {
        nr::UNLINK => NameCall::one(file::UNLINK, here(a0)),
        nr::UNLINKAT if a2 & AT_REMOVEDIR != 0 => NameCall::one(file::RMDIR, at(a0, a1)),
        nr::UNLINKAT => NameCall::one(file::UNLINK, at(a0, a1)),
        nr::RMDIR => NameCall::one(file::RMDIR, here(a0)),
        nr::RENAME => NameCall::two(file::RENAME, here(a0), here(a1)),
        nr::RENAMEAT2 if a4 & RENAME_EXCHANGE != 0 => NameCall::two(file::EXCHANGE, at(a0, a1), at(a2, a3)),
        nr::RENAMEAT | nr::RENAMEAT2 => NameCall::two(file::RENAME, at(a0, a1), at(a2, a3)),
        nr::LINK => NameCall::two(file::LINK, here(a0), here(a1)),
        nr::LINKAT if a4 & AT_EMPTY_PATH != 0 => NameCall::two(file::LINK, behind(a0 as i32), at(a2, a3)),
        nr::LINKAT => NameCall::two(file::LINK, at(a0, a1), at(a2, a3)),
        nr::MKDIR => NameCall::one(file::MKDIR, here(a0)),
        nr::MKDIRAT => NameCall::one(file::MKDIR, at(a0, a1)),
        nr::SYMLINK => Some(NameCall { other: user::c_string(a0)?, ..NameCall::one(file::SYMLINK, here(a1))? }),
        nr::SYMLINKAT => Some(NameCall { other: user::c_string(a0)?, ..NameCall::one(file::SYMLINK, at(a1, a2))? }),
        nr::MKNOD if a1 & S_IFMT == S_IFREG || a1 & S_IFMT == 0 => NameCall::one(file::OPEN, here(a0)),
        nr::MKNODAT if a2 & S_IFMT == S_IFREG || a2 & S_IFMT == 0 => NameCall::one(file::OPEN, at(a0, a1)),
        nr::CHMOD => NameCall::one(file::MODE, here(a0)),
        nr::FCHMOD => NameCall::one(file::MODE, behind(a0 as i32)),
        nr::FCHMODAT | nr::FCHMODAT2 => NameCall::one(file::MODE, at(a0, a1)),
        nr::SETXATTR | nr::REMOVEXATTR => NameCall::xattr(file::CHANGE_XATTR, here(a0), a1),
        nr::LSETXATTR | nr::LREMOVEXATTR => NameCall::xattr(file::LCHANGE_XATTR, here(a0), a1),
        nr::FSETXATTR | nr::FREMOVEXATTR => NameCall::xattr(file::CHANGE_XATTR, behind(a0 as i32), a1),
        _ => None,
    }
}

/// An open that makes or empties a file.
pub fn opening(call: Call) -> Option<NameCall> {
    if !on() {
        return None;
    }
    let (directory, pointer, flags) = match call.nr {
        nr::OPEN => (AT_FDCWD, call.args[0], call.args[1]),
        nr::CREAT => (AT_FDCWD, call.args[0], O_CREAT | O_TRUNC),
        nr::OPENAT => (call.fd(0), call.args[1], call.args[2]),
        _ => (call.fd(0), call.args[1], user::read::<u64>(call.args[2])?),
    };
    if flags & (O_CREAT | O_TRUNC) == 0 || flags & O_TMPFILE != 0 {
        return None;
    }
    let path = path_at(directory, pointer)?;
    match stat_of(&path) {
        None if flags & O_CREAT == 0 => return None,
        Some(stat) if flags & O_TRUNC == 0 || flags & O_EXCL != 0 || !stat.is_regular() || stat.size == 0 => {
            return None;
        }
        _ => {}
    }
    NameCall::one(file::OPEN, Some(path))
}

/// `truncate` of a file that is no pool.
pub fn truncating(call: Call) -> Option<NameCall> {
    if !on() {
        return None;
    }
    let path = path_at(AT_FDCWD, call.args[0])?;
    stat_of(&path).filter(|stat| pools::find(stat.identity()).is_none())?;
    NameCall::one(file::TRUNCATE, Some(path))
}

fn stat_of(path: &[u8]) -> Option<Stat> {
    let mut stat = Stat::default();
    let mut string = path.to_vec();
    string.push(0);
    // SAFETY: the kernel fills `stat`, which has its layout; the path ends with a zero.
    (unsafe { raw!(nr::STAT, string.as_ptr(), &raw mut stat) } == 0).then_some(stat)
}

/// Lets the kernel do the call while nobody else changes names, and the host looks before and after.
pub fn carry_out(thread: &mut Thread, call: Call, step: &NameCall) -> i64 {
    let header = Header { aux: step.op, ..event::header(thread, kind::FILE_AFTER) };
    let mut order = ring::order(thread);
    announce(&mut order, step);
    // Paths may lie in PM.
    let (passed, _copies) = buffers::with_copies(call);
    let [a0, a1, a2, a3, a4, a5] = passed.args;
    // SAFETY: the program's own call; buffers in pools are replaced by copies.
    let result = unsafe { raw!(call.nr, a0, a1, a2, a3, a4, a5) };
    if result >= 0 {
        order.put(header, &[]);
        let request = order.ask();
        ring::wait_for_answer(request);
    }
    result
}

fn announce(order: &mut Order<'_>, step: &NameCall) {
    let thread = order.thread().number as u16;
    let header = Header { kind: kind::FILE_BEFORE, aux: step.op, thread, ..Header::default() };
    order.write(header, &[&(step.path.len() as u32).to_le_bytes(), &step.path, &step.other]);
    let request = order.ask();
    ring::wait_for_answer(request);
}

/// The file behind a descriptor, if what is written to it is recorded though it is no pool. The first time the host saves what it holds.
pub fn written_file(thread: &mut Thread, fd: i32) -> Option<Stat> {
    if !on() {
        return None;
    }
    let stat = Stat::of(fd).filter(Stat::is_regular)?;
    if control().streams.contains(&[stat.device, stat.inode]) {
        return None;
    }
    if is_known(&stat) {
        return Some(stat);
    }
    let step = NameCall::one(file::WRITE, behind(fd))?;
    announce(&mut ring::order(thread), &step);
    note_known(&stat);
    Some(stat)
}

fn slots_of(stat: &Stat) -> (u64, impl Iterator<Item = usize>) {
    let word = (stat.inode ^ stat.device.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (word, (0..8).map(move |step| ((word >> 40) as usize + step) % FILE_SLOTS))
}

/// Has the host been told of this file? A full table only means that it is told again.
fn is_known(stat: &Stat) -> bool {
    let (word, mut slots) = slots_of(stat);
    slots.any(|slot| control().files[slot].load(Ordering::Acquire) == word)
}

fn note_known(stat: &Stat) {
    let (word, slots) = slots_of(stat);
    for slot in slots {
        if control().files[slot].compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// `len` bytes from `start` of such a file have changed.
pub fn content_changed(thread: &mut Thread, fd: i32, stat: &Stat, start: u64, len: u64) {
    let header = event::header(thread, kind::FILE_DATA);
    let own = super::files::readable(fd);
    let mut order = ring::order(thread);
    let mut bytes: Vec<u8> = Vec::new();
    for (offset, len) in event::cut(start, len) {
        bytes.resize(len as usize, 0);
        // SAFETY: the kernel writes at most `len` bytes into `bytes`, which has as many.
        let got = unsafe { raw!(nr::PREAD64, own, bytes.as_mut_ptr(), len, offset) };
        bytes.truncate(got.max(0) as usize);
        let header = Header { address: offset, aux: (offset != start) as u8, ..header };
        order.put(header, &[&stat.device.to_le_bytes(), &stat.inode.to_le_bytes(), &bytes]);
    }
    if own != fd {
        sys!(nr::CLOSE, own);
    }
}

/// Such a file has this length now.
pub fn resized(thread: &mut Thread, stat: &Stat) {
    let header = Header { address: stat.size as u64, ..event::header(thread, kind::FILE_LEN) };
    ring::order(thread).put(header, &[&stat.device.to_le_bytes(), &stat.inode.to_le_bytes()]);
}

/// A range of such a file is zero now.
pub fn zeroed(thread: &mut Thread, stat: &Stat, offset: u64, len: u64) {
    let header = Header { address: offset, ..event::header(thread, kind::FILE_HOLE) };
    let parts = [stat.device.to_le_bytes(), stat.inode.to_le_bytes(), len.to_le_bytes()];
    ring::order(thread).put(header, &[&parts[0], &parts[1], &parts[2]]);
}

/// Such a file, or (`None`) everything, was synced.
pub fn synced(thread: &mut Thread, stat: Option<&Stat>, data_only: bool) {
    if !on() || stat.is_some_and(|stat| !is_known(stat)) {
        return;
    }
    let header = Header { aux: data_only as u8, ..event::header(thread, kind::FILE_SYNC) };
    let (device, inode) = stat.map_or((0, 0), |stat| (stat.device, stat.inode));
    ring::order(thread).put(header, &[&device.to_le_bytes(), &inode.to_le_bytes()]);
}
