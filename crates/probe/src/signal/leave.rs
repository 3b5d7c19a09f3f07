//! The way out of the engine. Between the labels the program's whole state is in the thread's structure.

use core::arch::{asm, global_asm};
use core::mem::offset_of;

use crate::thread::Thread;
use crate::trampoline::pass::{trampoline_enter, trampoline_enter_end};

global_asm!(
    // A signal that comes before the comparison is seen by it; one that comes after it is delivered from where it
    // interrupts. The trap gives the handler a kernel-made frame, with all of the floating-point state, to deliver from.
    ".globl signal_leave", "signal_leave:",
    "cmp dword ptr gs:[{signal_waits}], 0", "jne 2f",
    "mov rsp, gs:[{engine_rsp}]",
    "jmp trampoline_enter",
    "2:", "int3",
    ".globl signal_leave_trap", "signal_leave_trap:",
    "ud2",
    ".globl signal_leave_end", "signal_leave_end:",
    signal_waits = const offset_of!(Thread, signal_waits),
    engine_rsp = const offset_of!(Thread, engine_rsp),
);

unsafe extern "C" {
    fn signal_leave();
    fn signal_leave_trap();
    fn signal_leave_end();
}

/// Last thing that the engine does: enters translated code at `thread.resume`, or the program's signal handler if a
/// signal waits. Does not come back: the engine's frames are dropped (none of the callers owns anything).
pub fn before_entering(thread: &mut Thread) {
    leave(thread)
}

fn leave(thread: &mut Thread) -> ! {
    let rsp = thread.engine_rsp;
    // SAFETY: the state in the structure is complete; the stub uses no stack but the top of the engine's.
    unsafe { asm!("mov rsp, {rsp}", "jmp {leave}", rsp = in(reg) rsp, leave = sym signal_leave, options(noreturn)) }
}

/// Is the program's state entirely in the thread's structure, and nothing left to do but to load it?
pub fn is_leaving(rip: u64) -> bool {
    let stub = signal_leave as *const () as u64..signal_leave_end as *const () as u64;
    let enter = trampoline_enter as *const () as u64..trampoline_enter_end as *const () as u64;
    stub.contains(&rip) || enter.contains(&rip)
}

/// Did the trap of the way out raise this?
pub fn is_trap(rip: u64) -> bool {
    rip == signal_leave_trap as *const () as u64
}
