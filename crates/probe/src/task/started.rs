//! The first moments of a task on its own engine stack.

use core::arch::global_asm;

use super::clone::announce_process;
use crate::ring;
use crate::signal;
use crate::sys::{nr, sys};
use crate::thread::Thread;
use crate::trampoline::pass;

global_asm!(
    // rdi = number, rsi = six arguments, rdx = the child's structure. The child comes up on the stack named by the
    // arguments with every register but rax and rsp as here.
    ".globl task_clone", "task_clone:",
    "push rbx",
    "mov rbx, rdx",
    "mov rax, rdi", "mov r11, rsi",
    "mov rdi, [r11]", "mov rsi, [r11+8]", "mov rdx, [r11+16]", "mov r10, [r11+24]", "mov r8, [r11+32]", "mov r9, [r11+40]",
    "syscall",
    "test rax, rax", "jz 2f",
    "pop rbx",
    "ret",
    "2:",
    "xor ebp, ebp",
    "mov rdi, rbx",
    "call {started}",
    "ud2",
    started = sym started,
);

unsafe extern "C" {
    fn task_clone(nr: u64, args: *const u64, child: u64) -> i64;
}

/// Makes the task. Comes back in the parent only.
///
/// # Safety
/// `child` must be complete but for what [`Thread::install`] sets, signals must be blocked, and `args` must name the
/// child's engine stack.
pub unsafe fn start_on_own_stack(number: u64, args: &[u64; 6], child: *mut Thread) -> i64 {
    // SAFETY: stated above.
    unsafe { task_clone(number, args.as_ptr(), child as u64) }
}

/// What the new task must know besides its structure lies at the far end of its stack: 0, or the number of the parent
/// process plus one if the task is a process of its own and must say so.
pub fn leave_note(child: &Thread, parent: Option<u32>) {
    // SAFETY: the fresh engine stack of the child.
    unsafe { *(child.stack_base as *mut u64) = parent.map_or(0, |p| p as u64 + 1) }
}

fn read_note(thread: &Thread) -> Option<u32> {
    // SAFETY: written by `leave_note`.
    unsafe { (*(thread.stack_base as *const u64)).checked_sub(1).map(|p| p as u32) }
}

extern "C" fn started(thread: &mut Thread) -> ! {
    thread.install();
    signal::init(thread);
    if let Some(parent) = read_note(thread) {
        let pid = sys!(nr::GETPID) as u32;
        let (number, process) = (thread.number, thread.process);
        announce_process(&mut ring::order(thread), number, process, parent, pid, 1);
    }
    signal::unblock(thread);
    pass::start(thread)
}
