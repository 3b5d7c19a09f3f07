//! `rt_sigreturn`: the kernel itself restores the floating-point state and the mask from the program's frame; only the
//! address where it continues is the engine's.

use core::arch::asm;

use super::abi::{Context, SI_KERNEL, SIGSEGV, SignalFrame, TRAP_FLAG};
use super::set::SignalSet;
use super::{careful, catch, mask, raise};
use crate::sys::nr;
use crate::thread::Thread;
use crate::trampoline::pass;

/// Comes back only if the frame cannot be read (the program then gets a SIGSEGV, as from the kernel).
pub fn syscall(thread: &mut Thread) {
    // The handler's `ret` took the restorer's address off the stack: the context is on top now.
    let Some(saved) = careful::read::<Context>(thread.regs.rsp) else {
        raise::raise_fault(thread, SIGSEGV, SI_KERNEL, 0, 0, 0);
        return;
    };
    mask::block_all();
    thread.signals.mask = SignalSet(saved.mask).blockable();
    thread.signals.alternate.set(&saved.stack, saved.machine.rsp);
    let mut frame = SignalFrame { restorer: 0, context: saved, info: super::abi::Info::new(0, 0, 0) };
    let context = &mut frame.context;
    context.stack = catch::engine_stack(thread);
    thread.target = context.machine.rip;
    context.machine.rip = pass::trampoline_reenter as *const () as u64;
    context.machine.eflags &= !TRAP_FLAG;
    let waits = thread.signals.kept.is_some();
    context.mask = if waits { SignalSet::ALL } else { thread.signals.mask }.real().0;
    let rsp = &raw const frame.context as u64;
    // SAFETY: the kernel reads a complete frame and goes on at `trampoline_reenter` with the program's registers; this frame
    // of Rust is dropped and owns nothing.
    unsafe {
        asm!("mov rsp, {rsp}", "syscall", "ud2", rsp = in(reg) rsp, in("rax") nr::RT_SIGRETURN, options(noreturn))
    }
}
