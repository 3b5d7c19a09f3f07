//! The keeper: a tiny process between the host and the target.
//!
//! It starts the target, reaps whatever the target leaves behind, and reports how the target ended. Where the system
//! allows it is the first process of a PID namespace: process numbers are then the same in every run, and the kernel ends
//! every process of the run with it. Elsewhere it is a "child subreaper" and ends what is left by itself.
//!
//! Everything here runs in a copy of the host made by a bare `clone`, in which another thread may have held the
//! allocator's lock: nothing may allocate, and only system calls are made.

use std::ffi::c_char;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use super::shared::futex_wake;
use crate::keeping::bare::{errno, exit, kill, kill_children, prctl, write_user_maps};
use crate::keeping::page::ZeroedAtomics;

/// The host asks the keeper to send the target `SIGINT`. (A terminal's own `SIGINT` reaches the target anyway.)
pub(super) const PASS_INTERRUPT: i32 = libc::SIGUSR1;
/// The host asks the keeper to send the target `SIGTERM`.
pub(super) const PASS_TERMINATE: i32 = libc::SIGTERM;
/// The host asks the keeper to end every process of the run; also sent by the kernel when the host dies.
pub(super) const END_ALL: i32 = libc::SIGUSR2;

/// The keeper has not said yet whether its namespaces are set up.
pub(super) const UNDECIDED: u32 = 0;
/// They could not be set up: the keeper has left; start again without.
pub(super) const NOT_ISOLATED: u32 = 1;
pub(super) const ISOLATED: u32 = 2;

/// What the keeper tells the host, in memory that they share.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Report {
    /// One of the constants below.
    pub isolation: AtomicU32,
    /// errno of the `execveat` that failed; 0 = none.
    pub exec_error: AtomicI32,
    /// `wait` status of the target's first process, once `ended`.
    pub status: AtomicI32,
    pub ended: AtomicU32,
}

// SAFETY: atomics only, and zero is a value of each.
unsafe impl ZeroedAtomics for Report {}

/// Which processes the target's share a process group with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Those of the host: the terminal's keys reach host and target.
    Hosts,
    /// The keeper only: a target that signals its group must not hit the host.
    Keepers,
    /// As before, and there is no terminal: a session as well, so that `getsid` is the same in every run.
    KeepersSession,
}

/// Everything that the keeper and the target's process need, prepared by the host.
#[derive(Debug)]
pub(super) struct Plan {
    pub arguments: Vec<*const c_char>,
    pub environment: Vec<*const c_char>,
    /// (descriptor now, number in the target's process).
    pub descriptors: Vec<(i32, i32)>,
    /// Where the target starts; null: where the host is.
    pub directory: *const c_char,
    pub probe_number: i32,
    /// Soft limit needed while the descriptors are placed.
    pub placing_limit: libc::rlimit,
    /// Limits that the target shall see.
    pub limit: libc::rlimit,
    pub signal_mask: libc::sigset_t,
    /// The keeper is in new PID and mount namespaces.
    pub isolated: bool,
    /// Text for `/proc/self/uid_map` and `gid_map`; empty as root, where no user namespace is needed.
    pub uid_map: Vec<u8>,
    pub gid_map: Vec<u8>,
    pub group: Group,
    /// End the other processes when the first one ends.
    pub until_first: bool,
    pub report: *const Report,
}

impl Plan {
    fn report(&self) -> &Report {
        // SAFETY: the host keeps the shared page mapped as long as the plan, and this copy of it forever.
        unsafe { &*self.report }
    }
}

/// What the keeper does; never returns.
pub(super) fn run(plan: &Plan) -> ! {
    let report = plan.report();
    // The keeper leads the group, not the target: a program can only call setsid if it does not lead one.
    // SAFETY: plain system calls.
    unsafe {
        match plan.group {
            Group::Hosts => 0,
            Group::Keepers => libc::setpgid(0, 0),
            Group::KeepersSession => libc::setsid(),
        };
    }
    if plan.isolated {
        // The kernel ends a namespace with its first process.
        prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
        let done = isolate(plan);
        report.isolation.store(if done { ISOLATED } else { NOT_ISOLATED }, Ordering::Release);
        futex_wake(&report.isolation);
        if !done {
            exit(0);
        }
    } else {
        prctl(libc::PR_SET_PDEATHSIG, END_ALL as u64);
        prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    // SAFETY: a bare fork; the child goes straight to `become_target`, which only makes system calls.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32;
    match child {
        0 => become_target(plan),
        -1 => {
            report.exec_error.store(errno(), Ordering::Release);
            exit(1);
        }
        _ => keep(plan, child),
    }
}

fn become_target(plan: &Plan) -> ! {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
    // SAFETY: only system calls on data that the plan owns; the vectors end in null pointers.
    unsafe {
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const plan.placing_limit);
        for &(from, to) in &plan.descriptors {
            if libc::dup3(from, to, 0) < 0 {
                fail(plan);
            }
        }
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const plan.limit);
        if !plan.directory.is_null() && libc::chdir(plan.directory) != 0 {
            fail(plan);
        }
        // The host ignores these two; the target shall have the default.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        libc::personality(libc::ADDR_NO_RANDOMIZE as u64);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const plan.signal_mask, ptr::null_mut());
        libc::syscall(
            libc::SYS_execveat,
            plan.probe_number,
            c"".as_ptr(),
            plan.arguments.as_ptr(),
            plan.environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    fail(plan)
}

fn fail(plan: &Plan) -> ! {
    plan.report().exec_error.store(errno(), Ordering::Release);
    exit(127)
}

/// Waits for signals (all are blocked) until no process is left.
fn keep(plan: &Plan, target: i32) -> ! {
    // SAFETY: zeroed signal sets are valid arguments of `sigemptyset`, which initialises them.
    let mut awaited: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: as above, and the signal numbers are valid.
    unsafe {
        libc::sigemptyset(&raw mut awaited);
        for signal in [libc::SIGCHLD, PASS_INTERRUPT, PASS_TERMINATE, END_ALL] {
            libc::sigaddset(&raw mut awaited, signal);
        }
    }
    loop {
        // SAFETY: the set is initialised; no information is asked for.
        let signal = unsafe { libc::sigwaitinfo(&raw const awaited, ptr::null_mut()) };
        match signal {
            PASS_INTERRUPT => kill(target, libc::SIGINT),
            PASS_TERMINATE => kill(target, libc::SIGTERM),
            END_ALL => end_all(plan, target),
            // SIGCHLD, or an interrupted wait.
            _ => {}
        }
        reap(plan, target);
        if plan.until_first && plan.report().ended.load(Ordering::Relaxed) != 0 {
            end_all(plan, target);
        }
    }
}

/// Collects ended children; leaves when there is none left.
fn reap(plan: &Plan, target: i32) {
    loop {
        let mut status = 0;
        // SAFETY: plain system call with a live out-pointer.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        match pid {
            0 => return,
            -1 if errno() == libc::EINTR => {}
            -1 => exit(0),
            _ if pid == target => {
                plan.report().status.store(status, Ordering::Relaxed);
                plan.report().ended.store(1, Ordering::Release);
            }
            _ => {}
        }
    }
}

fn end_all(plan: &Plan, target: i32) -> ! {
    loop {
        if plan.isolated {
            kill(-1, libc::SIGKILL);
        } else {
            kill_children();
        }
        // The children of an ended process become ours, hence the loop; `reap` leaves when all are gone.
        reap(plan, target);
        // SAFETY: plain system call that only yields the processor.
        unsafe { libc::sched_yield() };
    }
}

/// Identity maps for a user namespace, and a `/proc` that shows the new PID namespace.
fn isolate(plan: &Plan) -> bool {
    if !plan.uid_map.is_empty() && !write_user_maps(&plan.uid_map, &plan.gid_map) {
        return false;
    }
    let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: C strings and null pointers, as mount(2) wants them.
    unsafe {
        libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), libc::MS_REC | libc::MS_SLAVE, ptr::null()) == 0
            && libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), quiet, ptr::null()) == 0
    }
}
