//! The engine's signal handler.

use alloc::sync::Arc;
use core::arch::global_asm;

use super::abi::{
    ALIGNMENT_FLAG, Context, Info, KernelAction, SA_NOCLDSTOP, SA_NOCLDWAIT, SA_ONSTACK, SA_RESTART, SA_RESTORER,
    SA_SIGINFO, StackInfo,
};
use super::action::Actions;
use super::set::SignalSet;
use super::state::{Kept, SIGNAL_STACK};
use super::{fault, mask, step};
use crate::load::space;
use crate::sys::{nr, raw};
use crate::thread::Thread;

global_asm!(
    // The kernel leaves the alignment check as the program had it; the engine is not compiled for that.
    ".globl signal_caught",
    "signal_caught:",
    "pushfq",
    "and dword ptr [rsp], {no_alignment_check}",
    "popfq",
    "jmp {caught}",
    ".globl signal_restore",
    "signal_restore:",
    "mov eax, {nr}",
    "syscall",
    "ud2",
    no_alignment_check = const !(ALIGNMENT_FLAG as i32),
    caught = sym caught,
    nr = const nr::RT_SIGRETURN,
);

unsafe extern "C" {
    fn signal_caught();
    fn signal_restore();
}

/// Where the signal stands in for what the kernel is told: what the program wants of the delivery itself is done by us,
/// what it wants of the kernel's behaviour towards children and interrupted calls is passed on.
pub fn real_action(program_flags: u64) -> KernelAction {
    KernelAction {
        handler: signal_caught as *const () as u64,
        flags: SA_SIGINFO | SA_ONSTACK | SA_RESTORER | program_flags & (SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT),
        restorer: signal_restore as *const () as u64,
        mask: SignalSet::ALL.real().0,
    }
}

/// Gives the current thread its signal stack; for the first thread of an image also takes over the faults' signals.
/// Otherwise `thread.signals.actions` and `mask` were set by the creator, and signals are blocked until
/// [`mask::unblock`].
pub fn init(thread: &mut Thread) {
    crate::thread::register(thread);
    if thread.signals.stack_base == 0 {
        thread.signals.stack_base = space::map_engine(SIGNAL_STACK);
    }
    let stack = engine_stack(thread);
    // SAFETY: the kernel only reads `stack`, which is the engine's and this thread's alone.
    unsafe { raw!(nr::SIGALTSTACK, &raw const stack, 0) };
    if thread.signals.actions.is_none() {
        let actions = Arc::new(Actions::new());
        actions.take_faults();
        thread.signals.actions = Some(actions);
        mask::inherit(thread);
    }
}

pub fn engine_stack(thread: &Thread) -> StackInfo {
    StackInfo { sp: thread.signals.stack_base, flags: 0, _pad: 0, size: SIGNAL_STACK }
}

/// The thread is over, or about to be with all signals blocked.
pub fn give_back_stack(thread: &mut Thread) {
    if thread.signals.stack_base != 0 {
        space::unmap_engine(thread.signals.stack_base, SIGNAL_STACK);
        thread.signals.stack_base = 0;
    }
}

/// What the kernel calls for every signal that the engine handles.
extern "C" fn caught(signal: i32, info: *const Info, context: *mut Context) {
    // SAFETY: the kernel's frame.
    let (info, context) = unsafe { (&*info, &mut *context) };
    // SAFETY: GS is set in every thread that has signals unblocked; whoever was interrupted does not go on with
    // cached fields of the thread that are changed here (see `blocking`, `leave`).
    unsafe { Thread::with_current(|thread| handle(thread, signal, info, context)) };
}

fn handle(thread: &mut Thread, signal: i32, info: &Info, context: &mut Context) {
    if SignalSet::FAULTS.has(signal) {
        if info.is_fault() {
            return fault::raised(thread, info, context);
        }
        if thread.signals.mask.has(signal) {
            return mask::hold(thread, info);
        }
    }
    let kept = Kept {
        info: *info,
        err: context.machine.err,
        trapno: context.machine.trapno,
        cr2: context.machine.cr2,
        fault: false,
    };
    step::deliver_when_possible(thread, context, kept);
}
