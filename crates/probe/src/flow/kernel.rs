//! What the kernel wrote for the program, in ordinary memory too: values that came from elsewhere end there.
//!
//! Calls without a rule are taken to write nothing; so is what `ioctl` writes, but for a terminal's settings and size.

use core::sync::atomic::{AtomicU64, Ordering};

use wire::record::{Header, kind};

use super::buffer;
use crate::load::user;
use crate::pm;
use crate::ring;
use crate::sys::nr;
use crate::syscall::dispatch::Call;
use crate::thread::Thread;

/// Before a system call: other threads may act on it.
pub fn before(thread: &mut Thread) {
    if ring::control().many_tasks.load(Ordering::Relaxed) != 0 {
        buffer::flush(thread);
    }
}

/// Tells the host of a range. The thread has no open entry.
pub fn wrote(thread: &mut Thread, address: u64, len: u64) {
    if address == 0 || len == 0 || !super::on() {
        return;
    }
    buffer::flush(thread);
    let header = Header { kind: kind::FLOW_WRITE, address, ..Header::default() };
    ring::order(thread).put(header, &[&len.to_le_bytes()]);
}

/// After a system call that returned `result`.
pub fn after(thread: &mut Thread, call: Call, result: i64) {
    if result < 0 {
        return;
    }
    told(thread, call, result);
    if super::values() {
        super::input::after(thread, call, result as u64);
    }
}

fn told(thread: &mut Thread, call: Call, result: i64) {
    let (a, result) = (call.args, result as u64);
    match call.nr {
        nr::MMAP if !pm::is_pm(result) => wrote(thread, result, a[1]),
        nr::BRK => grown(thread, result),
        nr::READV | nr::PREADV | nr::PREADV2 => vectors(thread, a[1], a[2], result),
        nr::RECVMSG => message(thread, a[1], result),
        nr::WAIT4 => {
            wrote(thread, a[1], 4);
            wrote(thread, a[3], 144);
        }
        nr::GETRESUID | nr::GETRESGID => a[..3].iter().for_each(|&at| wrote(thread, at, 4)),
        nr::SELECT | nr::PSELECT6 => a[1..4].iter().for_each(|&at| wrote(thread, at, a[0].div_ceil(64) * 8)),
        number => {
            if let Some((at, len)) = plain(number, &a, result) {
                wrote(thread, at, len);
            }
        }
    }
}

/// Calls that write one stretch: where, and how much.
fn plain(number: u64, a: &[u64; 6], result: u64) -> Option<(u64, u64)> {
    const TCGETS: u64 = 0x5401;
    const TIOCGWINSZ: u64 = 0x5413;
    Some(match number {
        nr::READ | nr::PREAD64 | nr::RECVFROM | nr::READLINK | nr::GETDENTS | nr::GETDENTS64 => (a[1], result),
        nr::READLINKAT => (a[2], result),
        nr::GETCWD | nr::GETRANDOM => (a[0], result),
        nr::STAT | nr::LSTAT | nr::FSTAT => (a[1], 144),
        nr::NEWFSTATAT => (a[2], 144),
        nr::STATX => (a[4], 256),
        nr::STATFS | nr::FSTATFS => (a[1], 120),
        nr::CLOCK_GETTIME | nr::CLOCK_GETRES | nr::GETRLIMIT => (a[1], 16),
        nr::GETTIMEOFDAY => (a[0], 16),
        nr::TIME => (a[0], 8),
        nr::TIMES => (a[0], 32),
        nr::GETRUSAGE => (a[1], 144),
        nr::SYSINFO => (a[0], 112),
        nr::UNAME => (a[0], 390),
        nr::PIPE | nr::PIPE2 => (a[0], 8),
        nr::SOCKETPAIR => (a[3], 8),
        nr::PRLIMIT64 => (a[3], 16),
        nr::RT_SIGACTION => (a[2], 32),
        nr::RT_SIGPROCMASK => (a[2], a[3]),
        nr::SIGALTSTACK => (a[1], 24),
        nr::WAITID => (a[2], 128),
        nr::POLL | nr::PPOLL => (a[0], a[1] * 8),
        nr::EPOLL_WAIT | nr::EPOLL_PWAIT => (a[1], result * 12),
        nr::SCHED_GETAFFINITY => (a[2], result),
        nr::IOCTL if a[1] == TCGETS => (a[2], 36),
        nr::IOCTL if a[1] == TIOCGWINSZ => (a[2], 8),
        _ => return None,
    })
}

/// Where the heap ended at the last look.
static HEAP_END: AtomicU64 = AtomicU64::new(0);

fn grown(thread: &mut Thread, end: u64) {
    let before = HEAP_END.swap(end, Ordering::Relaxed);
    if before != 0 && end > before {
        wrote(thread, before, end - before);
    }
}

fn vectors(thread: &mut Thread, list: u64, count: u64, mut left: u64) {
    for n in 0..count {
        let Some((address, len)) = user::read::<(u64, u64)>(list + n * 16) else { return };
        let len = len.min(left);
        wrote(thread, address, len);
        left -= len;
    }
}

/// A `struct msghdr`: its vectors, and what it says of itself.
fn message(thread: &mut Thread, header: u64, received: u64) {
    if let Some((list, count)) = user::read::<(u64, u64)>(header + 16) {
        vectors(thread, list, count.min(1024), received);
    }
    wrote(thread, header, 56);
}
