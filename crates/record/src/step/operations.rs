//! Operations on standard input: one line per `read`, so that the trace shows where each begins and ends.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};

use trace::event::EventKind;
use wire::mark;

use super::error::StepError;
use super::ptrace::{Registers, Tid};
use super::session::{Session, Task};
use super::virtual_calls::Answer;

/// Longest line served whole.
const LINE: u64 = 64 << 10;

/// The operations of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Operations {
    begun: u64,
    open: bool,
}

/// Is the call at this `syscall` instruction a read that operations begin with?
pub fn is_boundary(session: &Session, r: &Registers) -> bool {
    session.options.operations_stdin && r.rax.cast_signed() == libc::SYS_read && r.rdi == 0
}

/// A read of standard input: the operation before is over; the next line, if there is one, begins another.
pub fn read(session: &mut Session, task: &mut Task, r: &Registers) -> Result<(), StepError> {
    finish(session, task, r.rip)?;
    let (line, result) = match line(task.tid, r.rdx.min(LINE)) {
        Ok(line) => (line, 0),
        Err(error) => (Vec::new(), error.raw_os_error().unwrap_or(libc::EIO)),
    };
    if line.is_empty() {
        return Answer { result: i64::from(-result).cast_unsigned(), writes: Vec::new() }.give(session, task, r, 2);
    }
    let index = task.space.borrow().operations.begun;
    task.space.borrow_mut().operations = Operations { begun: index + 1, open: true };
    session.emit(task, r.rip, EventKind::OperationBegin { index })?;
    Answer { result: line.len() as u64, writes: vec![(r.rsi, line)] }.give(session, task, r, 2)
}

/// An instruction that marks where an operation begins or ends. One that begins ends the one before. Where lines are operations,
/// marks are none.
pub fn marked(session: &mut Session, task: &mut Task, pc: u64, code: &[u8]) -> Result<(), StepError> {
    let begins = code.starts_with(&mark::BEGIN);
    if session.options.operations_stdin || !(begins || code.starts_with(&mark::END)) {
        return Ok(());
    }
    finish(session, task, pc)?;
    if !begins {
        return Ok(());
    }
    let index = task.space.borrow().operations.begun;
    task.space.borrow_mut().operations = Operations { begun: index + 1, open: true };
    session.emit(task, pc, EventKind::OperationBegin { index })
}

/// The operation under way, if there is one, is over.
pub fn finish(session: &mut Session, task: &mut Task, pc: u64) -> Result<(), StepError> {
    let ended = {
        let operations = &mut task.space.borrow_mut().operations;
        std::mem::take(&mut operations.open).then(|| operations.begun - 1)
    };
    ended.map_or(Ok(()), |index| session.emit(task, pc, EventKind::OperationEnd { index }))
}

/// The next line of the target's standard input, read through a copy of its descriptor.
fn line(tid: Tid, limit: u64) -> io::Result<Vec<u8>> {
    let mut input = standard_input(tid)?;
    let mut line = Vec::new();
    let mut byte = [0];
    while (line.len() as u64) < limit && line.last() != Some(&b'\n') && input.read(&mut byte)? == 1 {
        line.push(byte[0]);
    }
    Ok(line)
}

fn standard_input(tid: Tid) -> io::Result<File> {
    // SAFETY: both calls take numbers only; each result that is not negative is a new descriptor that we own.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, process_of(tid)?, 0) as i32;
        if process < 0 {
            return Err(io::Error::last_os_error());
        }
        let process = OwnedFd::from_raw_fd(process);
        let fd = libc::syscall(libc::SYS_pidfd_getfd, std::os::fd::AsRawFd::as_raw_fd(&process), 0, 0) as i32;
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(fd)) }
    }
}

/// The process that a thread belongs to.
fn process_of(tid: Tid) -> io::Result<i32> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", tid.0))?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")).and_then(|id| id.trim().parse().ok());
    process.ok_or_else(|| io::Error::other("the kernel does not tell the thread's process"))
}
