//! The keeper: a tiny process between the host and a recovery.
//!
//! It puts the pools in place, starts the recovery, reaps whatever that leaves behind, and tells how it ended. Where the
//! system allows it is the first process of a PID namespace, and the kernel ends every process of the run with it; elsewhere
//! it is a "child subreaper" and ends what is left by itself. When the host dies it ends the run.
//!
//! Everything here runs in a copy of the host made by a bare `clone`, in which another thread may have held the
//! allocator's lock: nothing may allocate, and only system calls are made.

use std::ffi::{CString, c_char};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use record::keeping::bare::{errno, exit, kill, kill_children, prctl, write, write_user_maps};
use record::keeping::page::ZeroedAtomics;

use super::isolation::Namespaces;
use super::mounts::{Mounts, mount};
use super::nets::Nets;

/// The host asks the keeper to end every process of the run; also sent by the kernel when the host dies.
pub(super) const END_ALL: i32 = libc::SIGUSR2;

/// Where the way to the recovery's first instruction was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Stage {
    Nowhere = 0,
    UserMaps,
    PrivateMounts,
    Pools,
    Proc,
    Fork,
    Streams,
    Directory,
    Exec,
}

impl Stage {
    pub fn of(number: u32) -> Stage {
        use Stage::*;
        let all = [Nowhere, UserMaps, PrivateMounts, Pools, Proc, Fork, Streams, Directory, Exec];
        all.into_iter().find(|&stage| stage as u32 == number).unwrap_or(Nowhere)
    }
}

/// What the keeper tells the host, in memory that they share.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Told {
    /// The [`Stage`] that failed, and why.
    pub failed: AtomicU32,
    pub errno: AtomicI32,
    /// `wait` status of the recovery's first process, once `ended`.
    pub status: AtomicI32,
    pub ended: AtomicU32,
    /// The first of the signals that mean a crash by which a process died that had lost its parent; 0 = none.
    pub orphan_signal: AtomicI32,
}

// SAFETY: atomics only, and zero is a value of each.
unsafe impl ZeroedAtomics for Told {}

/// Everything that the keeper and the recovery's process need, prepared by the host.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub namespaces: Namespaces,
    /// Text for `/proc/self/uid_map` and `gid_map`.
    pub uid_map: Vec<u8>,
    pub gid_map: Vec<u8>,
    pub mounts: &'a Mounts,
    /// None only tries the isolation.
    pub start: Option<Start>,
    /// pidfd of the host.
    pub host: i32,
    pub told: *const Told,
}

/// The recovery's first process.
#[derive(Debug)]
pub(super) struct Start {
    pub program: CString,
    /// Both end with a null pointer.
    pub arguments: Vec<*const c_char>,
    pub environment: Vec<*const c_char>,
    pub dir: CString,
    /// Standard input, output and error; none keeps the host's, with its terminal.
    pub streams: Option<[i32; 3]>,
    pub nets: Option<Nets>,
}

impl Plan<'_> {
    fn told(&self) -> &Told {
        // SAFETY: the host keeps the shared page mapped as long as the plan, and this copy of it forever.
        unsafe { &*self.told }
    }

    fn fail(&self, stage: Stage) -> ! {
        self.told().errno.store(errno(), Ordering::Relaxed);
        self.told().failed.store(stage as u32, Ordering::Release);
        exit(127)
    }
}

/// What the keeper does; never returns.
pub(super) fn run(plan: &Plan<'_>) -> ! {
    if plan.start.as_ref().is_none_or(|start| start.streams.is_some()) {
        // The keeper leads the session, not the recovery: a program can only call setsid if it does not lead a group.
        // SAFETY: plain system call.
        unsafe { libc::setsid() };
    }
    if plan.namespaces.pid {
        prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
    } else {
        prctl(libc::PR_SET_PDEATHSIG, END_ALL as u64);
        prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    if host_is_dead(plan.host) {
        exit(0);
    }
    isolate(plan);
    let Some(start) = &plan.start else { leave(plan) };
    // SAFETY: a bare fork; the child goes straight to `become_recovery`, which only makes system calls.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32;
    match child {
        0 => become_recovery(plan, start),
        -1 => plan.fail(Stage::Fork),
        _ => keep(plan, child),
    }
}

/// The host may have died before the kernel knew that it should tell.
fn host_is_dead(host: i32) -> bool {
    let mut poll = libc::pollfd { fd: host, events: libc::POLLIN, revents: 0 };
    // SAFETY: one live entry.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
}

/// Identity maps for a user namespace, the pools in place, and a `/proc` that shows the new PID namespace.
fn isolate(plan: &Plan<'_>) {
    if plan.namespaces.user && !write_user_maps(&plan.uid_map, &plan.gid_map) {
        plan.fail(Stage::UserMaps);
    }
    if plan.namespaces.mount && !mount(c"", c"/", c"", libc::MS_REC | libc::MS_PRIVATE, ptr::null()) {
        plan.fail(Stage::PrivateMounts);
    }
    if !plan.mounts.make() {
        plan.fail(Stage::Pools);
    }
    let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    if plan.namespaces.pid && !mount(c"proc", c"/proc", c"proc", quiet, ptr::null()) {
        plan.fail(Stage::Proc);
    }
    if let Some(nets) = plan.start.as_ref().and_then(|start| start.nets.as_ref())
        && let Some(pid_max) = &nets.pid_max
        && plan.namespaces.pid
    {
        write(c"/proc/sys/kernel/pid_max", pid_max);
    }
}

fn become_recovery(plan: &Plan<'_>, start: &Start) -> ! {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
    // SAFETY: only system calls on data that the plan owns; the vectors end in null pointers.
    unsafe {
        for (number, &from) in start.streams.iter().flatten().enumerate() {
            if libc::dup2(from, number as i32) < 0 {
                plan.fail(Stage::Streams);
            }
        }
        // Whatever the host forgot to close on exec.
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        if libc::chdir(start.dir.as_ptr()) != 0 {
            plan.fail(Stage::Directory);
        }
        if let Some(nets) = &start.nets {
            limit(libc::RLIMIT_CPU, nets.cpu_seconds);
            // setrlimit(2): counted per user, and per user namespace; it does not bind root.
            if plan.namespaces.user {
                limit(libc::RLIMIT_NPROC, nets.tasks);
            }
        }
        if start.streams.is_some() {
            // core(5): 1 means no core file, and no program that is given one either.
            limit(libc::RLIMIT_CORE, 1);
        }
        // A crash shall be the same crash in the next run.
        libc::personality(libc::ADDR_NO_RANDOMIZE as u64);
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        libc::execve(start.program.as_ptr(), start.arguments.as_ptr(), start.environment.as_ptr());
    }
    plan.fail(Stage::Exec)
}

/// Lowers a limit; one that is lower already stays.
fn limit(resource: libc::__rlimit_resource_t, value: u64) {
    // SAFETY: a live structure for in and out.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::getrlimit(resource, &raw mut limit);
        let value = value.min(limit.rlim_max);
        let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        libc::setrlimit(resource, &raw const limit);
    }
}

/// Waits for signals (all are blocked) until no process is left.
fn keep(plan: &Plan<'_>, first: i32) -> ! {
    // SAFETY: zeroed signal sets are valid arguments of `sigemptyset`, which initialises them.
    let mut awaited: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: as above, and the signal numbers are valid.
    unsafe {
        libc::sigemptyset(&raw mut awaited);
        libc::sigaddset(&raw mut awaited, libc::SIGCHLD);
        libc::sigaddset(&raw mut awaited, END_ALL);
    }
    loop {
        // SAFETY: the set is initialised; no information is asked for.
        let signal = unsafe { libc::sigwaitinfo(&raw const awaited, ptr::null_mut()) };
        if signal == END_ALL {
            end_all(plan, first);
        }
        reap(plan, first);
    }
}

/// Collects ended children; leaves when there is none left.
fn reap(plan: &Plan<'_>, first: i32) {
    loop {
        let mut status = 0;
        // SAFETY: plain system call with a live out-pointer. __WALL: also children that were cloned without SIGCHLD.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
        match pid {
            0 => return,
            -1 if errno() == libc::EINTR => {}
            -1 => leave(plan),
            _ if pid == first => {
                plan.told().status.store(status, Ordering::Relaxed);
                plan.told().ended.store(1, Ordering::Release);
            }
            _ => note_orphan(plan.told(), status),
        }
    }
}

fn note_orphan(told: &Told, status: i32) {
    let crash = [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT, libc::SIGILL, libc::SIGFPE];
    if libc::WIFSIGNALED(status) && crash.contains(&libc::WTERMSIG(status)) {
        let _ = told.orphan_signal.compare_exchange(0, libc::WTERMSIG(status), Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn leave(plan: &Plan<'_>) -> ! {
    plan.mounts.unmake();
    exit(0)
}

fn end_all(plan: &Plan<'_>, first: i32) -> ! {
    loop {
        if plan.namespaces.pid {
            kill(-1, libc::SIGKILL);
        } else {
            kill_children();
        }
        // The children of an ended process become ours, hence the loop; `reap` leaves when all are gone.
        reap(plan, first);
        // SAFETY: plain system call that only yields the processor.
        unsafe { libc::sched_yield() };
    }
}
