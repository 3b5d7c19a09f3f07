//! The system calls about signals.

use super::{action, alternate, giveback, mask};
use crate::sys::nr;
use crate::thread::Thread;

/// Carries out a system call about signals; false: it is none of these (all others pass as they are).
pub fn syscall(thread: &mut Thread, number: u64) -> bool {
    let result = match number {
        nr::RT_SIGACTION => action::syscall(thread),
        nr::RT_SIGPROCMASK => mask::syscall(thread),
        nr::RT_SIGPENDING => mask::pending(thread),
        nr::RT_SIGSUSPEND => mask::suspend(thread),
        nr::SIGALTSTACK => alternate::syscall(thread),
        nr::RT_SIGRETURN => {
            giveback::syscall(thread);
            return true;
        }
        _ => return false,
    };
    thread.regs.rax = result as u64;
    thread.regs.rcx = thread.pc;
    thread.regs.r11 = thread.flags;
    true
}
