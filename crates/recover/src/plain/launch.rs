//! Starts a keeper and learns how it ended.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use record::keeping::bare::block_signals;
use record::keeping::page::SharedPage;

use super::error::{PlainError, system};
use super::isolation::Namespaces;
use super::keeper::{self, END_ALL, Plan, Stage, Start, Told};
use super::mounts::Mounts;

/// A keeper that was started. Dropping it ends the run.
#[derive(Debug)]
pub(super) struct Running {
    pid: i32,
    pidfd: OwnedFd,
    namespaces: Namespaces,
    told: SharedPage<Told>,
    reaped: bool,
}

/// How the processes of a run ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Where the start failed, if it did.
    pub failed: Option<(Stage, io::Error)>,
    /// `wait` status of the first process; none if it was ended before it could be told.
    pub status: Option<i32>,
    /// The signal of a crashed process that had lost its parent.
    pub orphan_signal: Option<i32>,
    /// Of all processes.
    pub cpu: Duration,
}

impl Running {
    /// Starts a keeper that puts the mounts in place and then runs `start`, or only tries the mounts.
    pub fn start(namespaces: Namespaces, mounts: &Mounts, start: Option<Start>) -> Result<Running, PlainError> {
        // SAFETY: these calls cannot fail and have no side effects.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        let told = SharedPage::create().map_err(system("map a page"))?;
        // SAFETY: a new descriptor that nobody else owns, checked below.
        let host = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) } as i32;
        if host < 0 {
            return Err(system("open its own pidfd")(io::Error::last_os_error()));
        }
        // SAFETY: as above.
        let host = unsafe { OwnedFd::from_raw_fd(host) };
        let plan = Plan {
            namespaces,
            uid_map: format!("{user} {user} 1").into_bytes(),
            gid_map: format!("{group} {group} 1").into_bytes(),
            mounts,
            start,
            host: host.as_raw_fd(),
            told: told.as_ptr(),
        };
        let mask = block_signals();
        let cloned = clone_keeper(&plan);
        // SAFETY: the mask is the one that `block_signals` found.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut()) };
        let (pid, pidfd) = cloned?;
        Ok(Running { pid, pidfd, namespaces, told, reaped: false })
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits until no process of the run is left, at most this long. True if none is.
    pub fn wait(&self, at_most: Duration) -> bool {
        let mut poll = libc::pollfd { fd: self.pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let time = libc::timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: i64::from(at_most.subsec_nanos()) };
        // SAFETY: one live entry, a live time, no signal mask.
        unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, ptr::null()) == 1 }
    }

    /// The first process has ended; others may live.
    pub fn first_ended(&self) -> bool {
        self.told.get().ended.load(Ordering::Acquire) != 0
    }

    /// Ends every process of the run.
    pub fn end_all(&self) {
        // The kernel ends a PID namespace with its first process; elsewhere the keeper must do it.
        let signal = if self.namespaces.pid { libc::SIGKILL } else { END_ALL };
        // SAFETY: plain system call; the keeper is our child and not yet reaped, so the number is its own.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// Waits until no process of the run is left.
    pub fn finish(mut self) -> Ended {
        let usage = self.reap();
        let told = self.told.get();
        let failed = match Stage::of(told.failed.load(Ordering::Acquire)) {
            Stage::Nowhere => None,
            stage => Some((stage, io::Error::from_raw_os_error(told.errno.load(Ordering::Relaxed)))),
        };
        let orphan = told.orphan_signal.load(Ordering::Relaxed);
        Ended {
            failed,
            status: self.first_ended().then(|| told.status.load(Ordering::Relaxed)),
            orphan_signal: (orphan != 0).then_some(orphan),
            cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        }
    }

    fn reap(&mut self) -> libc::rusage {
        self.reaped = true;
        // SAFETY: an all-zero `rusage` is valid; the keeper is our child and nobody else waits for it.
        unsafe {
            let mut usage: libc::rusage = mem::zeroed();
            while libc::wait4(self.pid, ptr::null_mut(), 0, &raw mut usage) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
            usage
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            self.end_all();
            self.reap();
        }
    }
}

fn clone_keeper(plan: &Plan<'_>) -> Result<(i32, OwnedFd), PlainError> {
    let mut pidfd: i32 = -1;
    let flags = plan.namespaces.flags() | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: a bare fork with an out-pointer for the pidfd; the child runs `keeper::run`, which neither allocates nor
    // returns.
    let pid = unsafe { libc::syscall(libc::SYS_clone, i64::from(flags), 0, &raw mut pidfd, 0, 0) } as i32;
    match pid {
        0 => keeper::run(plan),
        -1 => Err(PlainError::Isolate { what: "start a keeper process", source: io::Error::last_os_error() }),
        // SAFETY: the kernel stored a new descriptor that nobody else owns.
        _ => Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) })),
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}
