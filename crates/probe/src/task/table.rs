//! The system calls about tasks.

use super::{clone, exec, exit, wait};
use crate::sys::nr;
use crate::thread::Thread;

/// Carries out a system call about tasks; false: it is none of these.
pub fn syscall(thread: &mut Thread, number: u64) -> bool {
    let result = match number {
        nr::CLONE | nr::CLONE3 | nr::FORK | nr::VFORK => clone::syscall(thread, number),
        nr::EXECVE | nr::EXECVEAT => exec::syscall(thread, number),
        nr::EXIT => exit::thread(thread),
        nr::WAIT4 | nr::WAITID => match wait::syscall(thread, number) {
            Some(result) => result,
            None => return false,
        },
        _ => return false,
    };
    thread.regs.rax = result as u64;
    thread.regs.rcx = thread.pc;
    thread.regs.r11 = thread.flags;
    true
}
