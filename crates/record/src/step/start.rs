//! Starts the target, if possible as process 2 of a PID namespace of its own, so that its ids are the same in every
//! run and in every recorder, and so that the kernel ends all of its processes with the first one.
//!
//! Between recorder and target stands a supervisor, process 1 of the namespace: it starts the target and collects orphans.
//! The target waits on a pipe until it is traced, then executes the program.
//!
//! Supervisor and target are copies of one thread of the recorder: until exec they make system calls only.

use std::ffi::{CString, c_char};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::{fs, io, ptr};

use super::error::StepError;
use super::ptrace::{self, Stop, Tid};
use crate::target::Target;

/// The process that started the target. Ends every process of its namespace when dropped.
#[derive(Debug)]
pub struct Supervisor(Tid);

impl Drop for Supervisor {
    fn drop(&mut self) {
        ptrace::kill(self.0);
        // It is our child and dead or dying: this cannot hang. An error means that it has been reaped already.
        while let Ok(Some((_, stop))) = ptrace::wait(Some(self.0), true) {
            if matches!(stop, Stop::Exited(_) | Stop::Killed(_)) {
                break;
            }
        }
    }
}

/// Everything that supervisor and target need, made before they exist.
struct StartPlan {
    path: CString,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// Where the target starts; none: where the recorder is.
    directory: Option<CString>,
    /// Its standard input, output and error; none: those of the recorder.
    streams: Option<[i32; 3]>,
    /// The target reads its permission to go on here.
    gate: (OwnedFd, OwnedFd),
    /// Flags for the supervisor's `clone`.
    namespaces: i32,
    /// For `/proc/self/uid_map` and `gid_map`; empty as root.
    uid_map: Vec<u8>,
    gid_map: Vec<u8>,
}

/// Starts the program; it is stopped at its first instruction, and traced.
pub fn start(target: &Target) -> Result<(Supervisor, Tid), StepError> {
    let failed = |source| StepError::Start { path: target.path.to_string_lossy().into_owned(), source };
    // SAFETY: these calls only read ids.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let map = |id: u32| if user == 0 { Vec::new() } else { format!("{id} {id} 1").into_bytes() };
    let user_namespace = if user == 0 { 0 } else { libc::CLONE_NEWUSER };
    let mut plan = StartPlan {
        path: CString::new(target.path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?,
        arguments: pointers(&target.arguments),
        environment: pointers(&target.environment),
        directory: target.directory.clone(),
        streams: target.streams,
        gate: pipe().map_err(failed)?,
        namespaces: libc::CLONE_NEWPID | libc::CLONE_NEWNS | user_namespace,
        uid_map: map(user),
        gid_map: map(group),
    };
    let (supervisor, child) = match start_supervisor(&plan) {
        Ok(started) => started,
        // Containers and hardened kernels forbid namespaces: the target then has real ids.
        Err(_) => {
            plan.namespaces = 0;
            start_supervisor(&plan).map_err(failed)?
        }
    };
    ptrace::seize(child)?;
    // SAFETY: writes one byte of a literal to a pipe that we hold.
    unsafe { libc::write(plan.gate.1.as_raw_fd(), b"!".as_ptr().cast(), 1) };
    match ptrace::wait(Some(child), true)? {
        Some((_, Stop::Event(libc::PTRACE_EVENT_EXEC))) => Ok((supervisor, child)),
        Some((_, Stop::Exited(error))) => Err(failed(io::Error::from_raw_os_error(error))),
        _ => Err(failed(io::Error::other("it was killed before its first instruction"))),
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// Starts the supervisor and finds its child.
fn start_supervisor(plan: &StartPlan) -> io::Result<(Supervisor, Tid)> {
    // SAFETY: a bare fork; the child runs `keep`, which neither allocates nor returns.
    let pid = unsafe { libc::syscall(libc::SYS_clone, i64::from(plan.namespaces | libc::SIGCHLD), 0, 0, 0, 0) } as i32;
    match pid {
        -1 => return Err(io::Error::last_os_error()),
        0 => keep(plan),
        _ => {}
    }
    let supervisor = Supervisor(Tid(pid));
    loop {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        if let Some(child) = children.split_whitespace().next().and_then(|child| child.parse().ok()) {
            return Ok((supervisor, Tid(child)));
        }
        // A supervisor that could not set up its namespaces leaves at once.
        if let Ok(Some(_)) = ptrace::wait(Some(supervisor.0), false) {
            std::mem::forget(supervisor);
            return Err(io::Error::other("no namespaces here"));
        }
        std::thread::yield_now();
    }
}

/// The supervisor's life.
fn keep(plan: &StartPlan) -> ! {
    // SAFETY: system calls on data that the plan owns, and on locals.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        own_group();
        if plan.namespaces != 0 && !isolate(plan) {
            libc::_exit(1);
        }
        match libc::syscall(libc::SYS_clone, i64::from(libc::SIGCHLD), 0, 0, 0, 0) {
            0 => become_target(plan),
            -1 => libc::_exit(1),
            _ => {}
        }
        loop {
            if libc::waitpid(-1, ptr::null_mut(), 0) == -1 && *libc::__errno_location() == libc::ECHILD {
                libc::_exit(0);
            }
        }
    }
}

/// A target that signals its group must not hit the recorder, unless the terminal's keys shall reach both.
fn own_group() {
    // SAFETY: plain system calls; the descriptor is closed again.
    unsafe {
        let terminal = libc::open(c"/dev/tty".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOCTTY);
        if terminal < 0 {
            libc::setsid();
        } else if libc::tcgetpgrp(terminal) != libc::getpgrp() {
            libc::setpgid(0, 0);
        }
        libc::close(terminal);
    }
}

/// Identity maps for a user namespace, and a `/proc` that shows the new PID namespace.
fn isolate(plan: &StartPlan) -> bool {
    // user_namespaces(7): without privilege, setgroups must be denied before gid_map can be written.
    let mapped = plan.uid_map.is_empty()
        || write_file(c"/proc/self/setgroups".as_ptr(), b"deny")
            && write_file(c"/proc/self/uid_map".as_ptr(), &plan.uid_map)
            && write_file(c"/proc/self/gid_map".as_ptr(), &plan.gid_map);
    let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: C strings and null pointers, as mount(2) wants them.
    mapped
        && unsafe {
            libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), libc::MS_REC | libc::MS_SLAVE, ptr::null()) == 0
                && libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), quiet, ptr::null()) == 0
        }
}

fn write_file(path: *const c_char, text: &[u8]) -> bool {
    // SAFETY: a C string and a live buffer; the descriptor is closed again.
    unsafe {
        let fd: RawFd = libc::open(path, libc::O_WRONLY | libc::O_CLOEXEC);
        let done = fd >= 0 && libc::write(fd, text.as_ptr().cast(), text.len()) == text.len() as isize;
        libc::close(fd);
        done
    }
}

/// The target's process up to its exec.
fn become_target(plan: &StartPlan) -> ! {
    let mut permission = 0_u8;
    // SAFETY: system calls on data that the plan owns; the arrays end with null pointers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // Without the writing end of our own, the end of the recorder ends the wait.
        libc::close(plan.gate.1.as_raw_fd());
        if libc::read(plan.gate.0.as_raw_fd(), (&raw mut permission).cast(), 1) == 1 {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            let placed = plan.streams.iter().flatten().zip(0..).all(|(from, to)| libc::dup2(*from, to) >= 0);
            if placed && plan.directory.as_ref().is_none_or(|dir| libc::chdir(dir.as_ptr()) == 0) {
                libc::execve(plan.path.as_ptr(), plan.arguments.as_ptr(), plan.environment.as_ptr());
            }
        }
        // Nothing else has run here: the exit code can only be the error number.
        libc::_exit(*libc::__errno_location())
    }
}
