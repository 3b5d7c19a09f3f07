//! `execve` and `execveat`: the probe is started again, with a request for the new program.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use wire::control::{Control, EXEC_BYTES, EXEC_SLOTS};

use super::check::{self, Checked};
use crate::layout;
use crate::load::{attach, user};
use crate::recover::reference;
use crate::ring;
use crate::signal;
use crate::sys::{EFAULT, ENOENT, nr, raw, sys};
use crate::syscall::{proc, vectors};
use crate::thread::Thread;

const AT_FDCWD: i32 = -100;
const AT_EMPTY_PATH: u64 = 0x1000;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const ENAMETOOLONG: i64 = 36;
const ELOOP: i64 = 40;
const FREE: u32 = u32::MAX;

/// Comes back only if the exec fails.
pub fn syscall(thread: &mut Thread, number: u64) -> i64 {
    reference::must_not_start(thread);
    let r = thread.regs;
    let (dir, path, argv, envp, flags) = match number {
        nr::EXECVE => (AT_FDCWD, r.rdi, r.rsi, r.rdx, 0),
        _ => (r.rdi as i32, r.rsi, r.rdx, r.r10, r.r8),
    };
    // Lists that lie in PM, or have strings there: the kernel gets copies.
    let lists = if crate::pm::any() { [argv, envp].map(vectors::texts) } else { [None, None] };
    let [argv, envp] = [(argv, &lists[0]), (envp, &lists[1])]
        .map(|(given, copy)| copy.as_ref().map_or(given, |(list, _)| list.as_ptr() as u64));
    let slot = match path_to_open(dir, path, flags).and_then(|(shown, path)| prepare(thread, &shown, &path)) {
        Ok(slot) => slot,
        Err(error) => return error,
    };
    crate::flow::buffer::flush(thread);
    // Nothing is owned from here on: a `vfork` child leaves this memory to its parent as it is now.
    signal::prepare_exec(thread);
    let call = [attach::probe_fd() as u64, c"".as_ptr() as u64, argv, envp, AT_EMPTY_PATH, 0];
    let result = signal::blocking_syscall(thread, nr::EXECVEAT, call);
    ring::control().exec_slots[slot].pid.store(FREE, Ordering::Release);
    signal::undo_exec(thread);
    result
}

/// The path as the program gave it, and the one under which the new image can open the file itself.
fn path_to_open(dir: i32, path: u64, flags: u64) -> Result<(Vec<u8>, Vec<u8>), i64> {
    let path = user::c_string(path).ok_or(-EFAULT)?;
    if path.is_empty() && (flags & AT_EMPTY_PATH == 0 || dir == AT_FDCWD) {
        return Err(-ENOENT);
    }
    let shown = if path.is_empty() { crate::pm::path_of(dir) } else { path.clone() };
    let path = if let Some(own) = proc::executable_behind(&path) {
        own
    } else if dir == AT_FDCWD || path.starts_with(b"/") {
        path
    } else {
        let base = descriptor_path(dir);
        if path.is_empty() { base } else { [&base[..], b"/", &path].concat() }
    };
    if flags & AT_SYMLINK_NOFOLLOW != 0 && check::is_link(&path) {
        return Err(-ELOOP);
    }
    Ok((shown, path))
}

/// A path for an open file that still works when descriptors marked close-on-exec are gone.
fn descriptor_path(fd: i32) -> Vec<u8> {
    const F_GETFD: u64 = 1;
    const F_SETFD: u64 = 2;
    const FD_CLOEXEC: i64 = 1;
    let link = format!("/proc/self/fd/{fd}\0");
    let own = link.trim_end_matches('\0').as_bytes().to_vec();
    let marks = sys!(nr::FCNTL, fd, F_GETFD);
    if marks < 0 || marks & FD_CLOEXEC == 0 {
        return own;
    }
    let mut target = alloc::vec![0u8; user::PATH_MAX as usize];
    // SAFETY: the kernel writes at most `target.len()` bytes into `target`.
    let len = unsafe { raw!(nr::READLINK, link.as_ptr(), target.as_mut_ptr(), target.len()) };
    target.truncate(len.max(0) as usize);
    if check::same_file(&own, &target) {
        return target;
    }
    // A file without a name (memfd, deleted): the descriptor itself must live on.
    sys!(nr::FCNTL, fd, F_SETFD, marks & !FD_CLOEXEC);
    own
}

/// Checks the program and leaves the request in a slot; its index.
fn prepare(thread: &mut Thread, shown: &[u8], path: &[u8]) -> Result<usize, i64> {
    let Checked { privileged } = check::program(path)?;
    if privileged {
        let text = format!(
            "{} is set-user-ID or set-group-ID; it runs without these privileges here",
            String::from_utf8_lossy(path)
        );
        ring::message(thread, 1, &text);
    }
    let path = if shown == path { path.to_vec() } else { [shown, b"\0", path].concat() };
    if path.len() > EXEC_BYTES - 16 {
        return Err(-ENAMETOOLONG);
    }
    let pid = sys!(nr::GETPID) as u32;
    loop {
        let slots = &ring::control().exec_slots;
        let taken = (0..EXEC_SLOTS)
            .find(|&i| slots[i].pid.compare_exchange(FREE, pid, Ordering::SeqCst, Ordering::SeqCst).is_ok());
        let Some(index) = taken else {
            // Each slot belongs to a process that is in the middle of its exec.
            sys!(nr::SCHED_YIELD);
            continue;
        };
        // SAFETY: the slot is ours; the area is mapped writable at its fixed place.
        unsafe {
            let slot = &raw mut (*(layout::CONTROL as *mut Control)).exec_slots[index];
            (*slot).process = thread.process;
            (*slot).thread = thread.number;
            (*slot).path_len = path.len() as u32;
            core::ptr::copy_nonoverlapping(path.as_ptr(), (&raw mut (*slot).path).cast::<u8>(), path.len());
        }
        return Ok(index);
    }
}
