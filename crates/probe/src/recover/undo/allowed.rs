//! System calls whose effects end with what is put back: memory, descriptors, mappings, signal actions. What they do to files stays, as
//! it does when a process ends. A call that is not listed here makes the run one that cannot be undone.

use wire::recover::not_put_back;

use super::mappings;
use super::region::{self, Region};
use crate::sys::{nr, sys};
use crate::syscall::dispatch::Call;

/// The program makes this call.
pub fn observe(call: Call) {
    let Some(region) = region::current() else { return };
    mappings::before(region, call);
    if closes(region, call) {
        region.refuse(not_put_back::DESCRIPTOR, call.nr);
    } else if !is_undone(call) {
        region.refuse(not_put_back::CALL, call.nr);
    }
}

/// Does it close a descriptor that was there, or change it in a way that stays?
fn closes(region: &Region, call: Call) -> bool {
    const F_SETFD: u64 = 2;
    const F_SETLK_SETLKW: core::ops::RangeInclusive<u64> = 6..=7;
    match call.nr {
        nr::CLOSE => region.was_open(call.fd(0)),
        nr::DUP2 | nr::DUP3 => region.was_open(call.fd(1)),
        // Locks of these two kinds are the process's.
        nr::FCNTL => region.was_open(call.fd(0)) && (call.args[1] == F_SETFD || F_SETLK_SETLKW.contains(&call.args[1])),
        _ => false,
    }
}

fn is_undone(call: Call) -> bool {
    let [first, second, third, ..] = call.args;
    match call.nr {
        // Files and names: the same for a process that ends.
        nr::READ | nr::PREAD64 | nr::READV | nr::PREADV | nr::PREADV2 | nr::WRITE | nr::PWRITE64 | nr::WRITEV
        | nr::PWRITEV | nr::PWRITEV2 | nr::LSEEK | nr::FSYNC | nr::FDATASYNC | nr::SYNC | nr::SYNCFS
        | nr::SYNC_FILE_RANGE | nr::FTRUNCATE | nr::TRUNCATE | nr::FALLOCATE | nr::FADVISE64 | nr::READAHEAD
        | nr::SENDFILE | nr::COPY_FILE_RANGE | nr::SPLICE | nr::TEE
        | nr::OPEN | nr::OPENAT | nr::OPENAT2 | nr::CREAT | nr::CLOSE | nr::DUP | nr::DUP2 | nr::DUP3
        | nr::STAT | nr::LSTAT | nr::FSTAT | nr::NEWFSTATAT | nr::STATX | nr::ACCESS | nr::FACCESSAT
        | nr::FACCESSAT2 | nr::READLINK | nr::READLINKAT | nr::GETDENTS | nr::GETDENTS64 | nr::STATFS | nr::FSTATFS
        | nr::GETCWD | nr::MKDIR | nr::MKDIRAT | nr::RMDIR | nr::UNLINK | nr::UNLINKAT | nr::RENAME | nr::RENAMEAT
        | nr::RENAMEAT2 | nr::LINK | nr::LINKAT | nr::SYMLINK | nr::SYMLINKAT | nr::CHMOD | nr::FCHMOD | nr::FCHMODAT
        | nr::FCHMODAT2 | nr::CHOWN | nr::FCHOWN | nr::LCHOWN | nr::FCHOWNAT | nr::UTIME | nr::UTIMES | nr::UTIMENSAT
        | nr::FUTIMESAT | nr::GETXATTR | nr::LGETXATTR | nr::FGETXATTR | nr::LISTXATTR | nr::LLISTXATTR
        | nr::FLISTXATTR | nr::SETXATTR | nr::LSETXATTR | nr::FSETXATTR | nr::FLOCK
        // New descriptors of nothing that lasts.
        | nr::PIPE | nr::PIPE2 | nr::EVENTFD | nr::EVENTFD2 | nr::MEMFD_CREATE | nr::EPOLL_CREATE | nr::EPOLL_CREATE1
        // Memory: `mappings` looks at what they do.
        | nr::MMAP | nr::MUNMAP | nr::MREMAP | nr::MPROTECT | nr::BRK | nr::MADVISE | nr::MSYNC | nr::MINCORE
        // Questions.
        | nr::GETPID | nr::GETPPID | nr::GETTID | nr::GETUID | nr::GETEUID | nr::GETGID | nr::GETEGID | nr::GETRESUID
        | nr::GETRESGID | nr::GETGROUPS | nr::GETPGRP | nr::GETPGID | nr::GETSID | nr::UNAME | nr::SYSINFO
        | nr::GETRLIMIT | nr::GETRUSAGE | nr::TIMES | nr::GETCPU | nr::SCHED_GETAFFINITY | nr::SCHED_GETSCHEDULER
        | nr::SCHED_GETPARAM | nr::GETPRIORITY | nr::CLOCK_GETTIME | nr::CLOCK_GETRES | nr::GETTIMEOFDAY | nr::TIME
        | nr::GETRANDOM
        // Waits.
        | nr::NANOSLEEP | nr::CLOCK_NANOSLEEP | nr::SCHED_YIELD | nr::POLL | nr::PPOLL | nr::SELECT | nr::PSELECT6
        // Signals: what the kernel was told of actions is told again (`signal::put_back`).
        | nr::RT_SIGACTION | nr::RT_SIGPROCMASK | nr::RT_SIGPENDING | nr::RT_SIGRETURN | nr::SIGALTSTACK
        // The end.
        | nr::EXIT_GROUP | nr::EXIT
        // The engine answers them without the kernel.
        | nr::RSEQ | nr::IO_URING_SETUP => true,
        nr::PRLIMIT64 => third == 0,
        nr::FCNTL => matches!(second, 0..=7 | 36..=38 | 1030 | 1032 | 1034),
        nr::IOCTL => {
            const TCGETS: u64 = 0x5401;
            const TIOCGWINSZ: u64 = 0x5413;
            const FIONREAD: u64 = 0x541b;
            matches!(second, TCGETS | TIOCGWINSZ | FIONREAD)
        }
        nr::PRCTL => {
            const PR_GET_DUMPABLE: u64 = 3;
            const PR_GET_NAME: u64 = 16;
            matches!(first, PR_GET_DUMPABLE | PR_GET_NAME)
        }
        nr::FUTEX => {
            // Waiting, waking, moving waiters; with and without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
            matches!(second & 0x7f, 0 | 1 | 3 | 4 | 5 | 9 | 10)
        }
        nr::KILL | nr::TKILL => first == sys!(nr::GETPID) as u64,
        nr::TGKILL => first == sys!(nr::GETPID) as u64,
        _ => false,
    }
}
