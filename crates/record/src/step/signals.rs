//! Signals: what one will do to a thread, and how a handler begins.

use std::fs;

use super::error::StepError;
use super::ptrace::{self, Registers, Tid};
use super::session::{Session, Task};
use super::shadow::HandlerStack;

/// What a signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    Ignored,
    Handled,
    Fatal,
}

pub fn disposition(tid: Tid, signal: i32) -> Disposition {
    let status = fs::read_to_string(format!("/proc/{}/status", tid.0)).unwrap_or_default();
    let in_mask = |name: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
        mask >> (signal - 1) & 1 != 0
    };
    let harmless = matches!(signal, libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH | libc::SIGCONT);
    // Job control stops would stop us as well: the target goes on.
    let stops = matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
    if in_mask("SigCgt:") {
        Disposition::Handled
    } else if in_mask("SigIgn:") || harmless || stops {
        Disposition::Ignored
    } else {
        Disposition::Fatal
    }
}

/// The kernel has built a handler's frame, and the thread is at the handler's first instruction.
pub fn entered(session: &mut Session, task: &mut Task, old_rsp: u64, now: &Registers) -> Result<(), StepError> {
    // struct rt_sigframe: the return address, then a ucontext with uc_flags, uc_link and uc_stack (sp, flags, size).
    let stack = ptrace::read_u64(task.tid, now.rsp + 24)?;
    let size = ptrace::read_u64(task.tid, now.rsp + 40)?;
    let alternate = stack..stack.saturating_add(size);
    let on_alternate = alternate.contains(&now.rsp) && !alternate.contains(&old_rsp);
    // The frame ends where the stack ended: at its top, or below the red zone of the interrupted function.
    let end = if on_alternate { alternate.end } else { old_rsp.saturating_sub(128) };
    session.emit_kernel_write(task, now.rip, now.rsp, end.saturating_sub(now.rsp))?;
    // After the handler's `ret` the stack pointer is one word higher, until `rt_sigreturn`.
    let range = if on_alternate { HandlerStack::Alternate(alternate) } else { HandlerStack::Below(now.rsp + 8) };
    task.shadow.enter_handler(range);
    Ok(())
}
