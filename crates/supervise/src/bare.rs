//! System calls for a copy of the host made by a bare `clone`.
//!
//! Another thread may have held the allocator's lock when the copy was made: nothing here allocates.

use std::ffi::CStr;
use std::mem;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Blocks every signal, for a supervisor to inherit; returns the mask that was. Called by the host.
pub fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are initialised by the calls.
    unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        let mut before: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

/// Sets the mask that [`block_signals`] returned.
pub fn set_signals(mask: &libc::sigset_t) {
    // SAFETY: an initialised set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}

/// Sleeps while `word` is `expected`, at most `timeout`. Spurious returns are possible.
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Duration) {
    let limit = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    // SAFETY: `word` is a live, aligned 32-bit word; the timeout outlives the call. Not FUTEX_PRIVATE: the other side
    // is another process.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, &raw const limit) };
}

/// Wakes everybody who sleeps on `word`.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: as in `futex_wait`.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Lowers a limit; one that is lower already stays.
pub fn set_limit(resource: libc::__rlimit_resource_t, value: u64) {
    // SAFETY: a live structure for in and out.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::getrlimit(resource, &raw mut limit);
        let value = value.min(limit.rlim_max);
        let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        libc::setrlimit(resource, &raw const limit);
    }
}

/// Identity maps for a new user namespace, as text for `/proc/self/uid_map` and `gid_map`.
pub fn write_user_maps(uid_map: &[u8], gid_map: &[u8]) -> bool {
    // user_namespaces(7): without privilege, setgroups must be denied before gid_map can be written.
    write(c"/proc/self/setgroups", b"deny")
        && write(c"/proc/self/uid_map", uid_map)
        && write(c"/proc/self/gid_map", gid_map)
}

/// Kills the direct children, found in `/proc/thread-self/children`, or at least the ones that are there.
pub fn kill_children() {
    let mut text = [0_u8; 4096];
    let filled = read(c"/proc/thread-self/children", &mut text);
    let mut pid = 0_i32;
    for byte in &text[..filled] {
        if byte.is_ascii_digit() {
            pid = pid * 10 + i32::from(byte - b'0');
        } else {
            if pid > 1 {
                kill(pid, libc::SIGKILL);
            }
            pid = 0;
        }
    }
}

/// True if all of the text was written.
pub fn write(path: &CStr, text: &[u8]) -> bool {
    // SAFETY: a C string and a live buffer; the descriptor is closed again.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        let done = fd >= 0 && libc::write(fd, text.as_ptr().cast(), text.len()) == text.len() as isize;
        libc::close(fd);
        done
    }
}

/// How much was read; nothing if the file cannot be.
fn read(path: &CStr, into: &mut [u8]) -> usize {
    // SAFETY: as in `write`.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let filled = if fd >= 0 { libc::read(fd, into.as_mut_ptr().cast(), into.len()) } else { 0 };
        libc::close(fd);
        filled.max(0) as usize
    }
}

/// For options that take one number.
pub fn prctl(option: i32, value: u64) {
    // SAFETY: no option that takes one number reads or writes memory.
    unsafe { libc::prctl(option, value, 0, 0, 0) };
}

pub fn kill(pid: i32, signal: i32) {
    // SAFETY: plain system call.
    unsafe { libc::kill(pid, signal) };
}

pub fn errno() -> i32 {
    // SAFETY: the thread's errno is always there.
    unsafe { *libc::__errno_location() }
}

/// Ends the process without running anything of the host's.
pub fn exit(code: i32) -> ! {
    // SAFETY: as said.
    unsafe { libc::_exit(code) }
}
