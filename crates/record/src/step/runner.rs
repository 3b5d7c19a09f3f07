//! All threads of the target, stepped one instruction each in turn.
//!
//! One thread moves at a time, so the order of the events is the order of the stores. A thread inside a system call
//! that waits does not hold up the others; a thread that another one's system call woke is waited for before the
//! next instruction, so that the order does not depend on how fast the kernel is.

use std::cell::RefCell;
use std::fs;
use std::rc::Rc;

use trace::event::{EventKind, ExitStatus, ProcessId, ThreadId};

use super::error::StepError;
use super::execute::{self, Stepped};
use super::kernel::{self, SystemCall};
use super::ptrace::{self, Stop, Tid};
use super::session::{Session, State, Task};
use super::shadow::ShadowStack;
use super::signals::{self, Disposition};
use super::space::Space;
use super::start::{self, Supervisor};
use super::{births, flow, image, operations, virtual_calls};
use crate::target::Target;

/// A process of the target.
#[derive(Debug)]
struct Process {
    /// The thread that its exit is told of.
    speaker: ThreadId,
    exit_told: bool,
    /// It is ending: none of its threads will execute another instruction.
    ending: bool,
}

/// The target under way. Ends all its processes when dropped.
#[derive(Debug)]
pub struct Runner<'a> {
    session: &'a mut Session,
    tasks: Vec<Task>,
    processes: Vec<Process>,
    first_status: Option<ExitStatus>,
    /// Ends what is left, after this runner has reaped what it traces.
    _supervisor: Supervisor,
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        for task in &self.tasks {
            ptrace::kill(task.tid);
        }
        // Every thread of a traced process must be reaped by its tracer.
        while !self.tasks.is_empty() {
            match ptrace::wait(None, true) {
                Ok(Some((tid, Stop::Exited(_) | Stop::Killed(_)))) => self.tasks.retain(|task| task.tid != tid),
                Ok(Some(_)) => {}
                _ => break,
            }
        }
    }
}

impl<'a> Runner<'a> {
    /// Starts the target; it is stopped before its first instruction.
    pub fn start(session: &'a mut Session, target: &Target) -> Result<Runner<'a>, StepError> {
        let (supervisor, tid) = start::start(target)?;
        let (thread, process) = (session.new_thread(), session.new_process());
        let task = Task {
            tid,
            thread,
            process,
            space: Rc::new(RefCell::new(Space::default())),
            shadow: ShadowStack::default(),
            must_fence: false,
            state: State::Ready,
            last_pc: 0,
        };
        let processes = vec![Process { speaker: thread, exit_told: false, ending: false }];
        let runner = Runner { session, tasks: vec![task], processes, first_status: None, _supervisor: supervisor };
        image::prepare(tid, &runner.session.options)?;
        runner.session.emit_without_place(thread, EventKind::ProcessStart { process, parent: None })?;
        if let Some(flow) = &runner.session.flow {
            flow.born(&runner.tasks[0], None, false);
        }
        Ok(runner)
    }

    /// Runs the target to its end; returns how its first process ended.
    pub fn run(&mut self) -> Result<ExitStatus, StepError> {
        while !self.tasks.is_empty() {
            if !self.round()? {
                // Everyone waits: so do we.
                if let Some((tid, stop)) = ptrace::wait(None, true)? {
                    self.stopped(tid, stop)?;
                }
            }
        }
        Ok(self.first_status.unwrap_or(ExitStatus::Code(0)))
    }

    /// Gives every thread its turn; false if none could move.
    fn round(&mut self) -> Result<bool, StepError> {
        let mut moved = false;
        let mut at = 0;
        while at < self.tasks.len() {
            let tid = self.tasks[at].tid;
            if matches!(self.tasks[at].state, State::Ready) {
                if self.processes[self.tasks[at].process.0 as usize].ending {
                    self.tasks[at].state = State::Dying;
                } else {
                    self.turn(at)?;
                }
                moved = true;
            } else if let Some((tid, stop)) = ptrace::wait(Some(tid), false)? {
                self.stopped(tid, stop)?;
                moved = true;
            }
            // The task may be gone, then the next one has taken its place.
            if self.tasks.get(at).is_some_and(|task| task.tid == tid) {
                at += 1;
            }
        }
        Ok(moved)
    }

    /// One instruction of one thread.
    fn turn(&mut self, at: usize) -> Result<(), StepError> {
        let task = &mut self.tasks[at];
        let tid = task.tid;
        let stepped = match flow::execute(self.session, task) {
            // Killed from outside while it was stopped.
            Err(StepError::Ptrace { source, .. }) if source.raw_os_error() == Some(libc::ESRCH) => {
                task.state = State::Dying;
                return Ok(());
            }
            other => other?,
        };
        match stepped {
            Stepped::Done => Ok(()),
            Stepped::Stopped(stop) => self.stopped(tid, stop),
            Stepped::SystemCall => self.system_call(at),
        }
    }

    fn system_call(&mut self, at: usize) -> Result<(), StepError> {
        let task = &mut self.tasks[at];
        let registers = ptrace::registers(task.tid)?;
        task.last_pc = registers.rip;
        if operations::is_boundary(self.session, &registers) {
            return operations::read(self.session, task, &registers);
        }
        if let Some(answer) = virtual_calls::answer(self.session, task, &registers) {
            return answer.give(self.session, task, &registers, 2);
        }
        let tid = task.tid;
        match registers.rax.cast_signed() {
            libc::SYS_exit | libc::SYS_exit_group => self.exiting(at, &registers)?,
            _ => task.state = State::InCall(Box::new(kernel::before(self.session, task, &registers)?)),
        }
        ptrace::single_step(tid, 0)?;
        self.settle(tid)?;
        self.settle_woken(tid)
    }

    /// A thread is about to end itself or its process.
    fn exiting(&mut self, at: usize, registers: &ptrace::Registers) -> Result<(), StepError> {
        let number = self.tasks[at].process;
        let is_last = !self.tasks.iter().enumerate().any(|(i, other)| i != at && is_alive(other, number));
        let task = &mut self.tasks[at];
        task.state = State::Dying;
        if is_last || registers.rax.cast_signed() == libc::SYS_exit_group {
            let process = &mut self.processes[number.0 as usize];
            process.ending = true;
            process.exit_told = true;
            operations::finish(self.session, task, registers.rip)?;
            let status = ExitStatus::Code((registers.rdi & 0xff) as i32);
            self.session.emit(task, registers.rip, EventKind::ProcessExit { status })
        } else {
            self.session.emit_without_place(task.thread, EventKind::ThreadEnd)
        }
    }

    /// Waits until a thread in a system call stops or sleeps in the kernel.
    fn settle(&mut self, tid: Tid) -> Result<(), StepError> {
        let mut uninterruptible = 0;
        while self.tasks.iter().any(|task| task.tid == tid && !matches!(task.state, State::Ready)) {
            if let Some((tid, stop)) = ptrace::wait(Some(tid), false)? {
                self.stopped(tid, stop)?;
                continue;
            }
            match kernel_state(tid) {
                // Asleep, or a zombie whose report waits for its other threads.
                'S' | 'Z' | 'X' => return Ok(()),
                // Waiting for a disk, or for the child of a vfork, which may last.
                'D' => {
                    uninterruptible += 1;
                    if uninterruptible > 200 {
                        return Ok(());
                    }
                    std::thread::yield_now();
                }
                _ => std::thread::yield_now(),
            }
        }
        Ok(())
    }

    /// Threads that the system call of `caller` has woken are on their way: wait for them.
    fn settle_woken(&mut self, caller: Tid) -> Result<(), StepError> {
        let waiting: Vec<Tid> = self
            .tasks
            .iter()
            .filter(|task| task.tid != caller && matches!(task.state, State::InCall(_)))
            .map(|task| task.tid)
            .collect();
        for tid in waiting {
            if kernel_state(tid) != 'S' {
                self.settle(tid)?;
            }
        }
        Ok(())
    }

    fn index(&self, tid: Tid) -> Option<usize> {
        self.tasks.iter().position(|task| task.tid == tid)
    }

    /// A thread that was running in the kernel, or was interrupted, has something to report.
    fn stopped(&mut self, tid: Tid, stop: Stop) -> Result<(), StepError> {
        match stop {
            Stop::Exited(code) => self.gone(tid, ExitStatus::Code(code)),
            Stop::Killed(signal) => self.gone(tid, ExitStatus::Signal(signal)),
            Stop::Event(libc::PTRACE_EVENT_EXEC) => self.executed_program(tid),
            Stop::Event(libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE) => {
                self.born(tid)?;
                ptrace::single_step(tid, 0)
            }
            Stop::Event(_) => ptrace::single_step(tid, 0),
            Stop::Signal(signal) => self.signalled(tid, signal),
        }
    }

    /// A thread has stopped: after a step, or because of a signal.
    fn signalled(&mut self, tid: Tid, signal: i32) -> Result<(), StepError> {
        let Some(at) = self.index(tid) else { return Ok(()) };
        let stop = Stop::Signal(signal);
        let Some((step_trap, registers)) = execute::stop_registers(tid, stop)? else { return Ok(()) };
        let task = &mut self.tasks[at];
        match std::mem::replace(&mut task.state, State::Ready) {
            State::Entering { rsp } => {
                if step_trap {
                    return signals::entered(self.session, task, rsp, &registers);
                }
            }
            State::InCall(call) => {
                // A call that returned from a handler has other registers altogether.
                let done = registers.rip == call.pc + 2 && !kernel::is_restart(registers.rax);
                if done {
                    finish_call(self.session, task, &call, &registers)?;
                } else if !step_trap && signals::disposition(tid, signal) == Disposition::Ignored {
                    task.state = State::InCall(call);
                    return ptrace::single_step(tid, 0);
                }
            }
            State::Dying => {
                task.state = State::Dying;
                return ptrace::single_step(tid, signal);
            }
            State::Ready => {}
        }
        if step_trap { Ok(()) } else { self.deliver(at, signal, registers.rsp) }
    }

    /// Lets a signal take its course.
    fn deliver(&mut self, at: usize, signal: i32, rsp: u64) -> Result<(), StepError> {
        let task = &mut self.tasks[at];
        let tid = task.tid;
        match signals::disposition(tid, signal) {
            Disposition::Ignored => Ok(()),
            Disposition::Handled => {
                task.state = State::Entering { rsp };
                ptrace::single_step(tid, signal)?;
                let stop = ptrace::wait(Some(tid), true)?;
                stop.map_or(Ok(()), |(tid, stop)| self.stopped(tid, stop))
            }
            Disposition::Fatal => {
                let process = &mut self.processes[task.process.0 as usize];
                process.ending = true;
                process.speaker = task.thread;
                task.state = State::Dying;
                ptrace::single_step(tid, signal)
            }
        }
    }

    /// A thread has ended for good.
    fn gone(&mut self, tid: Tid, status: ExitStatus) -> Result<(), StepError> {
        let Some(at) = self.index(tid) else { return Ok(()) };
        let task = self.tasks.remove(at);
        let number = task.process;
        if self.tasks.iter().any(|other| other.process == number) {
            return Ok(());
        }
        let process = &mut self.processes[number.0 as usize];
        if !std::mem::replace(&mut process.exit_told, true) {
            let speaker = process.speaker;
            self.session.emit_without_place(speaker, EventKind::ProcessExit { status })?;
        }
        if number == ProcessId(0) {
            self.first_status = Some(status);
        }
        Ok(())
    }

    /// `fork`, `vfork` or `clone` has made a new thread.
    fn born(&mut self, parent: Tid) -> Result<(), StepError> {
        let child = Tid(i32::try_from(ptrace::event_message(parent)?).expect("a thread id"));
        ptrace::wait(Some(child), true)?;
        let Some(at) = self.index(parent) else { return Ok(()) };
        let task = births::child(self.session, &self.tasks[at], child)?;
        if task.process.0 as usize == self.processes.len() {
            self.processes.push(Process { speaker: task.thread, exit_told: false, ending: false });
            let start = EventKind::ProcessStart { process: task.process, parent: Some(self.tasks[at].process) };
            self.session.emit_without_place(task.thread, start)?;
        } else {
            self.session.emit_without_place(task.thread, EventKind::ThreadStart)?;
        }
        if let Some(flow) = &self.session.flow {
            let parent = &self.tasks[at];
            flow.born(&task, Some(parent), Rc::ptr_eq(&task.space, &parent.space));
        }
        self.tasks.push(task);
        Ok(())
    }

    /// `execve` has replaced the program. The thread that called it has the process's id from now on.
    fn executed_program(&mut self, tid: Tid) -> Result<(), StepError> {
        let former = Tid(i32::try_from(ptrace::event_message(tid)?).expect("a thread id"));
        if former != tid {
            self.tasks.retain(|task| task.tid != tid);
        }
        let Some(at) = self.index(former) else { return Ok(()) };
        let task = &mut self.tasks[at];
        task.tid = tid;
        let State::InCall(call) = std::mem::replace(&mut task.state, State::Ready) else { return Ok(()) };
        self.session.emit_without_place(task.thread, EventKind::Exec { path: &call.exec_path })?;
        task.space = Rc::new(RefCell::new(Space::default()));
        task.shadow = ShadowStack::default();
        task.must_fence = false;
        if let Some(flow) = &mut self.session.flow {
            flow.exec(task);
        }
        image::prepare(tid, &self.session.options)
    }
}

fn is_alive(task: &Task, process: ProcessId) -> bool {
    task.process == process && !matches!(task.state, State::Dying)
}

fn finish_call(
    session: &mut Session,
    task: &mut Task,
    call: &SystemCall,
    registers: &ptrace::Registers,
) -> Result<(), StepError> {
    // SDM, SYSCALL: r11 holds the flags, and with them the trap flag that drives us.
    const TRAP_FLAG: u64 = 0x100;
    if registers.r11 & TRAP_FLAG != 0 {
        ptrace::set_registers(task.tid, &ptrace::Registers { r11: registers.r11 & !TRAP_FLAG, ..*registers })?;
    }
    kernel::after(session, task, call, registers.rax)
}

/// State letter of a thread: R running, S asleep, D in an uninterruptible wait, t stopped by us, Z ended.
fn kernel_state(tid: Tid) -> char {
    let stat = fs::read_to_string(format!("/proc/{0}/task/{0}/stat", tid.0)).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next()).unwrap_or('X')
}
