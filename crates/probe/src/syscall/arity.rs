//! How many arguments a system call has. The registers beyond them hold anything, perhaps an address in PM that another thread
//! writes to meanwhile: it must not be taken for a buffer of the call.

use crate::sys::nr;

/// 6 where nothing is known.
pub fn count(number: u64) -> usize {
    match number {
        nr::SCHED_YIELD
        | nr::GETPID
        | nr::GETTID
        | nr::GETPPID
        | nr::GETUID
        | nr::GETGID
        | nr::GETEUID
        | nr::GETEGID
        | nr::GETPGRP
        | nr::PAUSE
        | nr::SYNC
        | nr::MUNLOCKALL
        | nr::VHANGUP
        | nr::SETSID
        | nr::INOTIFY_INIT
        | nr::RESTART_SYSCALL => 0,
        nr::DUP
        | nr::ALARM
        | nr::UMASK
        | nr::GETPGID
        | nr::GETSID
        | nr::CHDIR
        | nr::RMDIR
        | nr::UNLINK
        | nr::FCHDIR
        | nr::CHROOT
        | nr::SETUID
        | nr::SETGID
        | nr::TIMER_DELETE
        | nr::TIMER_GETOVERRUN
        | nr::MLOCKALL
        | nr::EVENTFD
        | nr::EPOLL_CREATE
        | nr::EPOLL_CREATE1
        | nr::SET_TID_ADDRESS
        | nr::SYSINFO
        | nr::TIMES
        | nr::SYNCFS
        | nr::INOTIFY_INIT1
        | nr::UNSHARE
        | nr::PERSONALITY
        | nr::USERFAULTFD
        | nr::SCHED_GETSCHEDULER
        | nr::UNAME
        | nr::PIPE
        | nr::FSYNC
        | nr::FDATASYNC
        | nr::CLOSE
        | nr::EXIT
        | nr::EXIT_GROUP
        | nr::BRK => 1,
        nr::DUP2
        | nr::KILL
        | nr::TKILL
        | nr::ACCESS
        | nr::GETRLIMIT
        | nr::SETRLIMIT
        | nr::GETRUSAGE
        | nr::GETITIMER
        | nr::MKDIR
        | nr::RENAME
        | nr::LINK
        | nr::SYMLINK
        | nr::CHMOD
        | nr::FCHMOD
        | nr::NANOSLEEP
        | nr::CLOCK_GETRES
        | nr::FLOCK
        | nr::SETPGID
        | nr::LISTEN
        | nr::SHUTDOWN
        | nr::UTIME
        | nr::UTIMES
        | nr::STATFS
        | nr::FSTATFS
        | nr::MLOCK
        | nr::MUNLOCK
        | nr::RT_SIGSUSPEND
        | nr::RT_SIGPENDING
        | nr::SIGALTSTACK
        | nr::SETREUID
        | nr::SETREGID
        | nr::INOTIFY_RM_WATCH
        | nr::TIMERFD_CREATE
        | nr::TIMERFD_GETTIME
        | nr::TIMER_GETTIME
        | nr::EVENTFD2
        | nr::MEMFD_CREATE
        | nr::PIDFD_OPEN
        | nr::ARCH_PRCTL
        | nr::SET_ROBUST_LIST
        | nr::SCHED_GETPARAM
        | nr::STAT
        | nr::LSTAT
        | nr::FSTAT
        | nr::CREAT
        | nr::FTRUNCATE
        | nr::CLOCK_GETTIME
        | nr::GETTIMEOFDAY
        | nr::PIPE2
        | nr::GETCWD
        | nr::MUNMAP => 2,
        nr::POLL
        | nr::IOCTL
        | nr::LSEEK
        | nr::SOCKET
        | nr::CONNECT
        | nr::ACCEPT
        | nr::BIND
        | nr::GETSOCKNAME
        | nr::GETPEERNAME
        | nr::SCHED_SETAFFINITY
        | nr::SCHED_GETAFFINITY
        | nr::GETDENTS
        | nr::FCNTL
        | nr::SEMGET
        | nr::SEMOP
        | nr::SHMGET
        | nr::MINCORE
        | nr::SETITIMER
        | nr::CHOWN
        | nr::FCHOWN
        | nr::LCHOWN
        | nr::SENDMSG
        | nr::DUP3
        | nr::RT_SIGQUEUEINFO
        | nr::TGKILL
        | nr::GETRESUID
        | nr::GETRESGID
        | nr::SETRESUID
        | nr::SETRESGID
        | nr::MKDIRAT
        | nr::UNLINKAT
        | nr::MKNOD
        | nr::FACCESSAT
        | nr::FCHMODAT
        | nr::TIMER_CREATE
        | nr::GETCPU
        | nr::CLOSE_RANGE
        | nr::MEMBARRIER
        | nr::SYMLINKAT
        | nr::OPEN
        | nr::READ
        | nr::WRITE
        | nr::READLINK
        | nr::GETDENTS64
        | nr::GETRANDOM
        | nr::READV
        | nr::WRITEV
        | nr::RECVMSG
        | nr::MPROTECT
        | nr::MADVISE
        | nr::MSYNC => 3,
        nr::WAIT4
        | nr::RT_SIGTIMEDWAIT
        | nr::SENDFILE
        | nr::SOCKETPAIR
        | nr::EPOLL_CTL
        | nr::EPOLL_WAIT
        | nr::ACCEPT4
        | nr::CLOCK_NANOSLEEP
        | nr::PRLIMIT64
        | nr::TIMERFD_SETTIME
        | nr::TIMER_SETTIME
        | nr::SIGNALFD4
        | nr::RENAMEAT
        | nr::UTIMENSAT
        | nr::FADVISE64
        | nr::TEE
        | nr::VMSPLICE
        | nr::SYNC_FILE_RANGE
        | nr::PTRACE
        | nr::OPENAT2
        | nr::SENDMMSG
        | nr::SEMTIMEDOP
        | nr::OPENAT
        | nr::NEWFSTATAT
        | nr::READLINKAT
        | nr::FALLOCATE
        | nr::PREAD64
        | nr::PWRITE64
        | nr::RT_SIGACTION
        | nr::RT_SIGPROCMASK => 4,
        nr::SELECT
        | nr::PRCTL
        | nr::SETSOCKOPT
        | nr::GETSOCKOPT
        | nr::WAITID
        | nr::PPOLL
        | nr::MOUNT
        | nr::LINKAT
        | nr::FCHOWNAT
        | nr::STATX
        | nr::MSGRCV
        | nr::PREADV
        | nr::PWRITEV
        | nr::RECVMMSG => 5,
        _ => 6,
    }
}
