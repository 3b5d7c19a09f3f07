//! The host's side of a supervised run: starts the supervisor, waits, asks it to end the run, and learns how it ended.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trace::event::ExitStatus;

use crate::bare::{block_signals, futex_wait, set_signals};
use crate::mounts::Mounts;
use crate::namespaces::Namespaces;
use crate::page::SharedPage;
use crate::supervisor::{
    self, Descriptors, END_ALL, First, Group, Identify, Inherited, KernelLimits, PASS_INTERRUPT, PASS_TERMINATE,
    Program, Report, StartStage, SupervisorPlan,
};

/// No supervisor could be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {source}")]
pub struct StartError {
    pub action: &'static str,
    pub source: io::Error,
}

fn failed(action: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |source| StartError { action, source }
}

/// The world in which a program runs.
#[derive(Debug)]
pub struct Surroundings<'a> {
    pub namespaces: Namespaces,
    /// Made by the supervisor in its own mount namespace.
    pub mounts: &'a Mounts,
    /// Files to be looked at when the mounts are there.
    pub identify: &'a [Identify<'a>],
    pub group: Group,
    /// End the other processes when the first one ends.
    pub until_first: bool,
}

/// A program that runs natively, as `execve` takes it.
#[derive(Debug)]
pub struct Start<'a> {
    pub program: &'a CStr,
    pub arguments: &'a [CString],
    pub environment: &'a [CString],
    pub directory: &'a CStr,
    /// Standard input, output and error; none keeps the host's, with its terminal.
    pub streams: Option<[i32; 3]>,
    pub limits: Option<KernelLimits>,
}

/// A run that was started. Dropping it ends every process of it.
#[derive(Debug)]
pub struct Supervised {
    pid: i32,
    pidfd: OwnedFd,
    namespaces: Namespaces,
    report: SharedPage<Report>,
    reaped: bool,
}

/// How the processes of a run ended.
#[derive(Debug)]
pub struct Ended {
    /// Where the start failed, if it did.
    pub failed: Option<(StartStage, io::Error)>,
    /// `wait` status of the first process; none if it was ended before it could be told.
    pub status: Option<i32>,
    /// The signal of a crashed process that had lost its parent.
    pub orphan_signal: Option<i32>,
    /// Of all processes.
    pub cpu: Duration,
}

impl Supervised {
    /// Starts a program natively.
    pub fn start(start: &Start<'_>, surroundings: &Surroundings<'_>) -> Result<Supervised, StartError> {
        let streams = start.streams.iter().flatten().copied().zip(0..).collect();
        let first = First {
            program: Program::File(start.program.to_owned()),
            arguments: pointers(start.arguments),
            environment: pointers(start.environment),
            directory: Some(start.directory.to_owned()),
            descriptors: Descriptors { list: streams, limits: None },
            inherited: if start.streams.is_some() { Inherited::Nothing } else { Inherited::NothingButCores },
            limits: start.limits.clone(),
            signal_mask: no_signals(),
        };
        Supervised::start_first(Some(first), surroundings)
    }

    /// Only makes the namespaces and mounts, to see whether the system allows them.
    pub fn attempt(namespaces: Namespaces, mounts: &Mounts) -> Result<Ended, StartError> {
        let surroundings =
            Surroundings { namespaces, mounts, identify: &[], group: Group::OwnSession, until_first: false };
        Ok(Supervised::start_first(None, &surroundings)?.finish())
    }

    pub(crate) fn start_first(first: Option<First>, around: &Surroundings<'_>) -> Result<Supervised, StartError> {
        // SAFETY: these calls cannot fail and have no side effects.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        let report = SharedPage::create().map_err(failed("map a page for the supervisor"))?;
        let host = own_pidfd()?;
        let mut plan = SupervisorPlan {
            namespaces: around.namespaces,
            uid_map: format!("{user} {user} 1").into_bytes(),
            gid_map: format!("{group} {group} 1").into_bytes(),
            mounts: around.mounts,
            identify: around.identify,
            group: around.group,
            until_first: around.until_first,
            first,
            host: host.as_raw_fd(),
            report: report.as_ptr(),
        };
        let mask = block_signals();
        if let Some(first) = &mut plan.first {
            first.signal_mask = mask;
        }
        let cloned = clone_supervisor(&plan);
        set_signals(&mask);
        let (pid, pidfd) = cloned?;
        Ok(Supervised { pid, pidfd, namespaces: around.namespaces, report, reaped: false })
    }

    /// The supervisor's number; [`Usage`](crate::usage::Usage) looks at its descendants.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits until namespaces and mounts are there; what failed if they are not.
    pub fn wait_until_set_up(&self) -> Option<(StartStage, io::Error)> {
        let set_up = &self.report.get().set_up;
        while set_up.load(Ordering::Acquire) == 0 && !self.wait(Duration::ZERO) {
            futex_wait(set_up, 0, Duration::from_millis(50));
        }
        self.failure()
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
        self.report.get().ended.load(Ordering::Acquire) != 0
    }

    /// How the first process ended, if it has.
    pub fn outcome(&self) -> Option<ExitStatus> {
        let status = self.first_ended().then(|| self.report.get().status.load(Ordering::Relaxed))?;
        Some(if libc::WIFSIGNALED(status) {
            ExitStatus::Signal(libc::WTERMSIG(status))
        } else {
            ExitStatus::Code(libc::WEXITSTATUS(status))
        })
    }

    /// Where the start failed, if it did.
    pub fn failure(&self) -> Option<(StartStage, io::Error)> {
        let report = self.report.get();
        match StartStage::of(report.failed.load(Ordering::Acquire)) {
            StartStage::Nowhere => None,
            stage => Some((stage, io::Error::from_raw_os_error(report.errno.load(Ordering::Relaxed)))),
        }
    }

    /// Sends the program `SIGINT`.
    pub fn interrupt(&self) {
        self.tell(PASS_INTERRUPT);
    }

    /// Sends the program `SIGTERM`.
    pub fn terminate(&self) {
        self.tell(PASS_TERMINATE);
    }

    /// Ends every process of the run.
    pub fn end_all(&self) {
        // The kernel ends a PID namespace with its first process; elsewhere the supervisor must do it.
        self.tell(if self.namespaces.pid { libc::SIGKILL } else { END_ALL });
    }

    fn tell(&self, signal: i32) {
        let (none, flags) = (ptr::null::<libc::siginfo_t>(), 0);
        // SAFETY: a descriptor of our own child; without further information. One that has ended is not hit.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.pidfd.as_raw_fd(), signal, none, flags) };
    }

    /// Waits until no process of the run is left.
    pub fn finish(mut self) -> Ended {
        let usage = self.reap();
        let orphan = self.report.get().orphan_signal.load(Ordering::Relaxed);
        Ended {
            failed: self.failure(),
            status: self.first_ended().then(|| self.report.get().status.load(Ordering::Relaxed)),
            orphan_signal: (orphan != 0).then_some(orphan),
            cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        }
    }

    fn reap(&mut self) -> libc::rusage {
        self.reaped = true;
        // SAFETY: an all-zero `rusage` is valid; the supervisor is our child and nobody else waits for it.
        unsafe {
            let mut usage: libc::rusage = mem::zeroed();
            while libc::wait4(self.pid, ptr::null_mut(), 0, &raw mut usage) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
            usage
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if !self.reaped {
            self.end_all();
            self.reap();
        }
    }
}

fn own_pidfd() -> Result<OwnedFd, StartError> {
    // SAFETY: a new descriptor that nobody else owns, checked below.
    let host = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) } as i32;
    if host < 0 {
        return Err(failed("open a pidfd of this process")(io::Error::last_os_error()));
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(host) })
}

fn clone_supervisor(plan: &SupervisorPlan<'_>) -> Result<(i32, OwnedFd), StartError> {
    let mut pidfd: i32 = -1;
    let flags = plan.namespaces.flags() | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: a bare fork with an out-pointer for the pidfd; the child runs `supervisor::run`, which neither allocates nor
    // returns.
    let pid = unsafe { libc::syscall(libc::SYS_clone, i64::from(flags), 0, &raw mut pidfd, 0, 0) } as i32;
    match pid {
        0 => supervisor::run(plan),
        -1 => Err(failed("start a supervisor process")(io::Error::last_os_error())),
        // SAFETY: the kernel stored a new descriptor that nobody else owns.
        _ => Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) })),
    }
}

fn no_signals() -> libc::sigset_t {
    // SAFETY: initialised by the call.
    unsafe {
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        none
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}

pub(crate) fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
}
