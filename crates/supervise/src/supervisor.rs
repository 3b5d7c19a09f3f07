//! The supervisor: a tiny process between the host and the program that it starts.
//!
//! It makes the mounts of the run, starts the program, reaps whatever that leaves behind, and tells how it ended. Where the
//! system allows it is the first process of a PID namespace: process numbers are then the same in every run, and the kernel ends
//! every process of the run with it. Elsewhere it is a "child subreaper" and ends what is left by itself. When the host dies it
//! ends the run.
//!
//! Everything here runs in a copy of the host made by a bare `clone`, in which another thread may have held the
//! allocator's lock: nothing may allocate, and only system calls are made.

use std::ffi::{CString, c_char};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::bare::{errno, exit, futex_wake, kill, kill_children, prctl, set_limit, write, write_user_maps};
use crate::mounts::{Mounts, mount};
use crate::namespaces::Namespaces;
use crate::page::ZeroedAtomics;

/// The host asks for a `SIGINT` to the program. (A terminal's own reaches the program anyway.)
pub(crate) const PASS_INTERRUPT: i32 = libc::SIGUSR1;
/// The host asks for a `SIGTERM` to the program.
pub(crate) const PASS_TERMINATE: i32 = libc::SIGTERM;
/// The host asks to end every process of the run; also sent by the kernel when the host dies.
pub(crate) const END_ALL: i32 = libc::SIGUSR2;

/// Where the way to the program's first instruction was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum StartStage {
    Nowhere = 0,
    UserMaps,
    PrivateMounts,
    /// The mounts that the host asked for.
    Mounts,
    Proc,
    Fork,
    Descriptors,
    Directory,
    Exec,
}

impl StartStage {
    pub(crate) fn of(number: u32) -> StartStage {
        use StartStage::*;
        let all = [Nowhere, UserMaps, PrivateMounts, Mounts, Proc, Fork, Descriptors, Directory, Exec];
        all.into_iter().find(|&stage| stage as u32 == number).unwrap_or(Nowhere)
    }

    /// It failed before the program's process was forked: nothing of it has run.
    pub fn is_isolation(self) -> bool {
        matches!(self, StartStage::UserMaps | StartStage::PrivateMounts | StartStage::Mounts | StartStage::Proc)
    }
}

/// What the supervisor tells the host, in memory that they share.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Report {
    /// 1 once namespaces and mounts are there; the host sleeps on it.
    pub set_up: AtomicU32,
    /// The [`StartStage`] that failed, and why.
    pub failed: AtomicU32,
    pub errno: AtomicI32,
    /// `wait` status of the program's first process, once `ended`.
    pub status: AtomicI32,
    pub ended: AtomicU32,
    /// The first of the signals that mean a crash by which a process died that had lost its parent; 0 = none.
    pub orphan_signal: AtomicI32,
}

// SAFETY: atomics only, and zero is a value of each.
unsafe impl ZeroedAtomics for Report {}

/// Which process group and session the program is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Those of the host: the terminal's keys reach host and program.
    Hosts,
    /// The supervisor's group: a program that signals its group must not hit the host.
    Own,
    /// As before, and without a terminal: a session as well, so that `getsid` is the same in every run.
    OwnSession,
}

/// What the program inherits beyond what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherited {
    /// Descriptors and ignored signals are those of the host, as if the user's shell had started it.
    OfHost,
    /// Nothing: no further descriptors, default signals, no core file.
    Nothing,
    /// As `Nothing`, but core files as the user has set them.
    NothingButCores,
}

/// Limits that the kernel keeps, beneath the host's own counting: a fork bomb can leave the host no time to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLimits {
    /// For `RLIMIT_CPU`.
    pub cpu_seconds: u64,
    /// Processes and threads, for `RLIMIT_NPROC`. Does not bind root.
    pub tasks: u64,
    /// The same for `pid_max`, as text. Binds everybody in the PID namespace.
    pub pid_max: Option<Vec<u8>>,
}

/// What the program's process executes.
#[derive(Debug)]
pub(crate) enum Program {
    File(CString),
    /// The file behind this descriptor, as the program's process has it.
    Descriptor(i32),
}

/// Descriptors of the program's process, and what its limit of open files has to be.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// (number now, number in the program's process).
    pub list: Vec<(i32, i32)>,
    /// The limit needed while they are placed, and the one that the program shall see.
    pub limits: Option<[libc::rlimit; 2]>,
}

/// The program's first process, prepared by the host.
#[derive(Debug)]
pub(crate) struct First {
    pub program: Program,
    /// Both end with a null pointer.
    pub arguments: Vec<*const c_char>,
    pub environment: Vec<*const c_char>,
    /// None: where the host is.
    pub directory: Option<CString>,
    pub descriptors: Descriptors,
    pub inherited: Inherited,
    pub limits: Option<KernelLimits>,
    /// The signal mask for [`Inherited::OfHost`].
    pub signal_mask: libc::sigset_t,
}

/// A file whose identity inside of the run the host wants to know: a private mount changes it.
#[derive(Debug)]
pub struct Identify<'a> {
    pub path: CString,
    pub device: &'a AtomicU64,
    pub inode: &'a AtomicU64,
}

/// Everything that the supervisor needs.
#[derive(Debug)]
pub(crate) struct SupervisorPlan<'a> {
    pub namespaces: Namespaces,
    /// Text for `/proc/self/uid_map` and `gid_map`.
    pub uid_map: Vec<u8>,
    pub gid_map: Vec<u8>,
    pub mounts: &'a Mounts,
    pub identify: &'a [Identify<'a>],
    pub group: Group,
    /// End the other processes when the first one ends.
    pub until_first: bool,
    /// None only tries the isolation.
    pub first: Option<First>,
    /// pidfd of the host.
    pub host: i32,
    pub report: *const Report,
}

impl SupervisorPlan<'_> {
    fn report(&self) -> &Report {
        // SAFETY: the host keeps the shared page mapped as long as the plan, and this copy of it forever.
        unsafe { &*self.report }
    }

    fn fail(&self, stage: StartStage) -> ! {
        self.report().errno.store(errno(), Ordering::Relaxed);
        self.report().failed.store(stage as u32, Ordering::Release);
        self.say_set_up();
        exit(127)
    }

    fn say_set_up(&self) {
        self.report().set_up.store(1, Ordering::Release);
        futex_wake(&self.report().set_up);
    }
}

/// What the supervisor does; never returns.
pub(crate) fn run(plan: &SupervisorPlan<'_>) -> ! {
    // The supervisor leads the group, not the program: a program can only call setsid if it does not lead one.
    // SAFETY: plain system calls.
    unsafe {
        match plan.group {
            Group::Hosts => 0,
            Group::Own => libc::setpgid(0, 0),
            Group::OwnSession => libc::setsid(),
        };
    }
    if plan.namespaces.pid {
        // The kernel ends a namespace with its first process.
        prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
    } else {
        prctl(libc::PR_SET_PDEATHSIG, END_ALL as u64);
        prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    if host_is_dead(plan.host) {
        exit(0);
    }
    isolate(plan);
    plan.say_set_up();
    let Some(first) = &plan.first else { leave(plan) };
    // SAFETY: a bare fork; the child goes straight to `become_program`, which only makes system calls.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32;
    match child {
        0 => become_program(plan, first),
        -1 => plan.fail(StartStage::Fork),
        _ => watch_over(plan, child),
    }
}

/// The host may have died before the kernel knew that it should tell.
fn host_is_dead(host: i32) -> bool {
    let mut poll = libc::pollfd { fd: host, events: libc::POLLIN, revents: 0 };
    // SAFETY: one live entry.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
}

/// Identity maps for a user namespace, the mounts in place, and a `/proc` that shows the new PID namespace.
fn isolate(plan: &SupervisorPlan<'_>) {
    if plan.namespaces.user && !write_user_maps(&plan.uid_map, &plan.gid_map) {
        plan.fail(StartStage::UserMaps);
    }
    // Slave: what the user mounts meanwhile is seen, what is mounted here is not seen outside.
    if plan.namespaces.mount && !mount(c"", c"/", c"", libc::MS_REC | libc::MS_SLAVE, ptr::null()) {
        plan.fail(StartStage::PrivateMounts);
    }
    if !plan.mounts.make() {
        plan.fail(StartStage::Mounts);
    }
    for file in plan.identify {
        identify(file);
    }
    let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    if plan.namespaces.pid && !mount(c"proc", c"/proc", c"proc", quiet, ptr::null()) {
        plan.fail(StartStage::Proc);
    }
    if let Some(limits) = plan.first.as_ref().and_then(|first| first.limits.as_ref())
        && let Some(pid_max) = &limits.pid_max
        && plan.namespaces.pid
    {
        write(c"/proc/sys/kernel/pid_max", pid_max);
    }
}

fn identify(file: &Identify<'_>) {
    // SAFETY: a C string and a place for the answer, of which all zeros are a value.
    unsafe {
        let mut answer: libc::stat = mem::zeroed();
        if libc::stat(file.path.as_ptr(), &raw mut answer) == 0 {
            file.device.store(answer.st_dev, Ordering::Relaxed);
            file.inode.store(answer.st_ino, Ordering::Release);
        }
    }
}

fn become_program(plan: &SupervisorPlan<'_>, first: &First) -> ! {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
    place_descriptors(plan, first);
    if let Some(directory) = &first.directory {
        // SAFETY: a C string.
        if unsafe { libc::chdir(directory.as_ptr()) } != 0 {
            plan.fail(StartStage::Directory);
        }
    }
    if let Some(limits) = &first.limits {
        set_limit(libc::RLIMIT_CPU, limits.cpu_seconds);
        // setrlimit(2): counted per user, and per user namespace; it does not bind root.
        if plan.namespaces.user {
            set_limit(libc::RLIMIT_NPROC, limits.tasks);
        }
    }
    if first.inherited == Inherited::Nothing {
        // core(5): 1 means no core file, and no program that is given one either.
        set_limit(libc::RLIMIT_CORE, 1);
    }
    set_signals(first);
    // SAFETY: only system calls on data that the plan owns; the vectors end in null pointers.
    unsafe {
        // A crash shall be the same crash in the next run.
        libc::personality(libc::ADDR_NO_RANDOMIZE as u64);
        let (arguments, environment) = (first.arguments.as_ptr(), first.environment.as_ptr());
        match &first.program {
            Program::File(path) => {
                libc::execve(path.as_ptr(), arguments, environment);
            }
            Program::Descriptor(number) => {
                let empty = c"".as_ptr();
                libc::syscall(libc::SYS_execveat, *number, empty, arguments, environment, libc::AT_EMPTY_PATH);
            }
        }
    }
    plan.fail(StartStage::Exec)
}

fn place_descriptors(plan: &SupervisorPlan<'_>, first: &First) {
    let set = |limit: &libc::rlimit| {
        // SAFETY: a live structure.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) };
    };
    if let Some([placing, _]) = &first.descriptors.limits {
        set(placing);
    }
    for &(from, to) in &first.descriptors.list {
        // SAFETY: plain system calls on descriptors that the host has prepared. One that has its number already must only
        // be kept open: dup3 refuses it.
        let placed = unsafe { if from == to { libc::fcntl(to, libc::F_SETFD, 0) } else { libc::dup3(from, to, 0) } };
        if placed < 0 {
            plan.fail(StartStage::Descriptors);
        }
    }
    if let Some([_, lasting]) = &first.descriptors.limits {
        set(lasting);
    }
    if first.inherited != Inherited::OfHost {
        // Whatever the host forgot to close on exec.
        // SAFETY: plain system call.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    }
}

fn set_signals(first: &First) {
    // SAFETY: valid signal numbers; the set is initialised by the call.
    unsafe {
        if first.inherited == Inherited::OfHost {
            // The host ignores these two; the program shall have the default.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const first.signal_mask, ptr::null_mut());
            return;
        }
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Waits for signals (all are blocked) until no process is left.
fn watch_over(plan: &SupervisorPlan<'_>, first: i32) -> ! {
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
            PASS_INTERRUPT => kill(first, libc::SIGINT),
            PASS_TERMINATE => kill(first, libc::SIGTERM),
            END_ALL => end_all(plan, first),
            // SIGCHLD, or an interrupted wait.
            _ => {}
        }
        reap(plan, first);
        if plan.until_first && plan.report().ended.load(Ordering::Relaxed) != 0 {
            end_all(plan, first);
        }
    }
}

/// Collects ended children; leaves when there is none left.
fn reap(plan: &SupervisorPlan<'_>, first: i32) {
    loop {
        let mut status = 0;
        // SAFETY: plain system call with a live out-pointer. __WALL: also children that were cloned without SIGCHLD.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
        match pid {
            0 => return,
            -1 if errno() == libc::EINTR => {}
            -1 => leave(plan),
            _ if pid == first => {
                plan.report().status.store(status, Ordering::Relaxed);
                plan.report().ended.store(1, Ordering::Release);
            }
            _ => note_orphan(plan.report(), status),
        }
    }
}

fn note_orphan(report: &Report, status: i32) {
    let crash = [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT, libc::SIGILL, libc::SIGFPE];
    if libc::WIFSIGNALED(status) && crash.contains(&libc::WTERMSIG(status)) {
        let _ = report.orphan_signal.compare_exchange(0, libc::WTERMSIG(status), Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn leave(plan: &SupervisorPlan<'_>) -> ! {
    plan.mounts.unmake();
    exit(0)
}

fn end_all(plan: &SupervisorPlan<'_>, first: i32) -> ! {
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
