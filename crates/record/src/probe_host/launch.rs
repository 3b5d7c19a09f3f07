//! Starts a target under the probe.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trace::event::ExitStatus;
use wire::control::{CONTROL_FD_BELOW, SOCKET_FD_BELOW};

use super::embedded::ProbeImage;
use super::error::{LaunchError, os};
use super::keeper::{self, Group, Plan, Report};
use super::shared::{Shared, futex_wait};
use crate::keeping::bare::block_signals;
use crate::keeping::page::SharedPage;

/// Where the probe's three descriptors go if the limit leaves the choice. Every fork copies the table of descriptors
/// up to the highest one: a low number keeps forks cheap.
const USUAL_LIMIT: u64 = 1024;

/// How much of the system the run shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// In its own PID namespace: process numbers are the same in every run.
    Namespace,
    /// Beside all others, as wanted.
    Shared,
    /// Beside all others, because the system allows no namespace.
    Refused,
}

/// A target that was started, and its keeper.
#[derive(Debug)]
pub(super) struct Running {
    keeper: i32,
    report: SharedPage<Report>,
    pub isolation: Isolation,
}

/// What to start and how.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub probe: &'a ProbeImage,
    pub arguments: &'a [CString],
    pub environment: &'a [CString],
    pub shared: &'a Shared,
    pub namespaces: bool,
    pub until_first: bool,
    /// Where it starts; none: where the host is.
    pub directory: Option<&'a CStr>,
    /// Further descriptors: (now, in the target's process).
    pub descriptors: &'a [(i32, i32)],
}

impl Launch<'_> {
    /// Starts the target; the descriptors of its pools will arrive on the socket.
    pub fn start(&self) -> Result<(Running, OwnedFd), LaunchError> {
        let probe = self.probe.open()?;
        let (socket, theirs) = socket_pair()?;
        let report = SharedPage::create().map_err(os("map a page for the keeper"))?;
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a live out-pointer.
        if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
            return Err(os("read the limit of open files")(io::Error::last_os_error()));
        }
        let number = free_numbers(limit);
        let placing = libc::rlimit { rlim_cur: limit.rlim_cur.max(number as u64 + 1), rlim_max: limit.rlim_max };
        let mut plan = Plan {
            arguments: pointers(self.arguments),
            environment: pointers(self.environment),
            descriptors: [
                (probe.as_raw_fd(), number),
                (self.shared.fd.as_raw_fd(), number - CONTROL_FD_BELOW),
                (theirs.as_raw_fd(), number - SOCKET_FD_BELOW),
            ]
            .into_iter()
            .chain(self.descriptors.iter().copied())
            .collect(),
            directory: self.directory.map_or(ptr::null(), CStr::as_ptr),
            probe_number: number,
            placing_limit: placing,
            limit,
            signal_mask: block_signals(),
            isolated: self.namespaces,
            uid_map: Vec::new(),
            gid_map: Vec::new(),
            group: group(),
            until_first: self.until_first,
            report: report.as_ptr(),
        };
        let started = start_keeper(&mut plan, &report);
        // SAFETY: the mask is the one that `block_signals` found.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const plan.signal_mask, ptr::null_mut()) };
        let keeper = started?;
        let isolation = match (self.namespaces, plan.isolated) {
            (_, true) => Isolation::Namespace,
            (true, false) => Isolation::Refused,
            (false, false) => Isolation::Shared,
        };
        Ok((Running { keeper, report, isolation }, socket))
    }
}

impl Running {
    /// Waits until no process of the run is left. To be called once, from any thread.
    pub fn wait(&self) {
        let mut status = 0;
        loop {
            // SAFETY: a live out-pointer; the keeper is our child and nobody else waits for it.
            let pid = unsafe { libc::waitpid(self.keeper, &raw mut status, 0) };
            if pid == self.keeper || io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
                return;
            }
        }
    }

    /// Sends the keeper one of its signals.
    pub fn tell_keeper(&self, signal: i32) {
        // SAFETY: plain system call; only called before `wait` returned.
        unsafe { libc::kill(self.keeper, signal) };
    }

    /// How the target's first process ended, if it has.
    pub fn outcome(&self) -> Option<ExitStatus> {
        let report = self.report.get();
        if report.ended.load(Ordering::Acquire) == 0 {
            return None;
        }
        let status = report.status.load(Ordering::Relaxed);
        Some(if libc::WIFSIGNALED(status) {
            ExitStatus::Signal(libc::WTERMSIG(status))
        } else {
            ExitStatus::Code(libc::WEXITSTATUS(status))
        })
    }

    /// Why the probe did not start, if it did not.
    pub fn exec_error(&self) -> Option<io::Error> {
        match self.report.get().exec_error.load(Ordering::Acquire) {
            0 => None,
            errno => Some(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Starts the keeper, isolated if the plan says so and the system allows; the plan then says what came of it.
fn start_keeper(plan: &mut Plan, report: &SharedPage<Report>) -> Result<i32, LaunchError> {
    if plan.isolated {
        if let Some(keeper) = start_isolated(plan, report.get()) {
            return Ok(keeper);
        }
        plan.isolated = false;
    }
    clone_keeper(plan, 0)
}

fn start_isolated(plan: &mut Plan, report: &Report) -> Option<i32> {
    // SAFETY: these calls cannot fail and have no side effects.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let mut flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    if user != 0 {
        flags |= libc::CLONE_NEWUSER;
        plan.uid_map = format!("{user} {user} 1").into_bytes();
        plan.gid_map = format!("{group} {group} 1").into_bytes();
    }
    let keeper = clone_keeper(plan, flags).ok()?;
    wait_until_isolated(keeper, report).then_some(keeper)
}

fn clone_keeper(plan: &Plan, flags: i32) -> Result<i32, LaunchError> {
    // SAFETY: a bare fork; the child runs `keeper::run`, which neither allocates nor returns.
    let pid = unsafe { libc::syscall(libc::SYS_clone, i64::from(flags | libc::SIGCHLD), 0, 0, 0, 0) } as i32;
    match pid {
        0 => keeper::run(plan),
        -1 => Err(os("start the keeper process")(io::Error::last_os_error())),
        _ => Ok(pid),
    }
}

/// Waits for the keeper's word on its namespaces; a keeper that failed is reaped.
fn wait_until_isolated(keeper: i32, report: &Report) -> bool {
    loop {
        match report.isolation.load(Ordering::Acquire) {
            keeper::UNDECIDED if is_alive(keeper) => {
                futex_wait(&report.isolation, keeper::UNDECIDED, Duration::from_millis(50));
            }
            keeper::ISOLATED => return true,
            _ => {
                // SAFETY: reaps our own child, which is about to exit or has.
                unsafe { libc::waitpid(keeper, ptr::null_mut(), 0) };
                return false;
            }
        }
    }
}

fn is_alive(child: i32) -> bool {
    // SAFETY: a zeroed `siginfo_t` is valid, and only looks: the child is not reaped.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, child as u32, &raw mut info, flags) == 0 && info.si_pid() == 0
    }
}

/// In the terminal's foreground target and host stay together.
fn group() -> Group {
    // SAFETY: plain system calls; the descriptor is closed again.
    unsafe {
        let terminal = libc::open(c"/dev/tty".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOCTTY);
        if terminal < 0 {
            return Group::KeepersSession;
        }
        let foreground = libc::tcgetpgrp(terminal) == libc::getpgrp();
        libc::close(terminal);
        if foreground { Group::Hosts } else { Group::Keepers }
    }
}

/// The number for the probe's descriptor: with the two below it above the target's limit if that is allowed, so that
/// the target never gets near them.
fn free_numbers(limit: libc::rlimit) -> i32 {
    let above = limit.rlim_cur.saturating_add(3);
    let top =
        if limit.rlim_cur <= USUAL_LIMIT && above <= limit.rlim_max { above } else { limit.rlim_cur.min(USUAL_LIMIT) };
    let mut number = top as i32 - 1;
    // SAFETY: asks only whether the descriptor is open.
    let free = |fd: i32| unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0;
    while number > 5 && !(free(number) && free(number - CONTROL_FD_BELOW) && free(number - SOCKET_FD_BELOW)) {
        number -= 1;
    }
    number
}

fn socket_pair() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let mut pair = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: a live array of two for the result.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) } != 0 {
        return Err(os("create a socket pair")(io::Error::last_os_error()));
    }
    // SAFETY: both descriptors are new and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])) })
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
}
