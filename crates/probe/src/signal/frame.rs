//! The frame on the program's stack, byte for byte as the kernel lays it out (Linux `arch/x86/kernel/signal_64.c`,
//! `signal.c: get_sigframe`).

use super::abi::{Context, KernelAction, SA_ONSTACK, SA_RESTORER, SignalFrame};
use super::careful;
use super::deliver::ProgramState;
use super::state::Kept;
use crate::thread::Thread;

/// Addresses that the handler gets.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub frame: u64,
    pub info: u64,
    pub context: u64,
}

const RED_ZONE: u64 = 128;
/// Offsets in the floating-point state (Linux `struct _fpstate_64`, `struct _fpx_sw_bytes`; Intel SDM vol. 1 §13.4).
mod fp {
    pub const LEGACY_BYTES: u64 = 512;
    pub const XMM: u64 = 160;
    pub const MAGIC1: u64 = 464;
    pub const EXTENDED_SIZE: u64 = 468;
    pub const XSTATE_BV: u64 = 512;
    pub const MAGIC1_VALUE: u32 = 0x4650_5853;
    pub const SSE: u64 = 2;
}

/// Bytes of the kernel's floating-point state at `address`, its end marker included.
fn fp_bytes(address: u64) -> u64 {
    if address == 0 {
        return 0;
    }
    // SAFETY: the kernel's frame, which is at least the legacy area long.
    unsafe {
        if *((address + fp::MAGIC1) as *const u32) != fp::MAGIC1_VALUE {
            return fp::LEGACY_BYTES;
        }
        *((address + fp::EXTENDED_SIZE) as *const u32) as u64
    }
}

/// Puts the program's xmm0–15 into the kernel's frame: the machine had the engine's.
pub fn put_xmm(fpstate: u64, xmm: &[u128; 16]) {
    if fpstate == 0 {
        return;
    }
    let extended = fp_bytes(fpstate) > fp::LEGACY_BYTES;
    // SAFETY: the kernel's frame on the engine's signal stack; the offsets lie inside it.
    unsafe {
        core::ptr::copy_nonoverlapping(
            xmm.as_ptr().cast::<u8>(),
            (fpstate + fp::XMM) as *mut u8,
            size_of::<[u128; 16]>(),
        );
        if extended {
            *((fpstate + fp::XSTATE_BV) as *mut u64) |= fp::SSE;
        }
    }
}

/// Writes the frame. `None`: there is no room or it cannot be written.
pub fn build(
    thread: &mut Thread,
    context: &Context,
    state: &ProgramState,
    kept: &Kept,
    action: &KernelAction,
) -> Option<Placed> {
    if action.flags & SA_RESTORER == 0 {
        return None;
    }
    let alternate = thread.signals.alternate;
    let mut sp = state.regs.rsp.wrapping_sub(RED_ZONE);
    let mut on_alternate = alternate.in_use(state.regs.rsp);
    if action.flags & SA_ONSTACK != 0 && alternate.is_set() && !alternate.in_use(sp) {
        sp = alternate.top();
        on_alternate = true;
    }
    let fp_len = fp_bytes(context.machine.fpstate);
    let fpstate = sp.wrapping_sub(fp_len) & !63;
    let at = (fpstate.wrapping_sub(size_of::<SignalFrame>() as u64) & !15).wrapping_sub(8);
    if on_alternate && !alternate.contains(at) {
        return None;
    }
    if crate::pm::is_pm(at) || crate::pm::is_pm(sp - 1) {
        crate::refuse!(
            thread,
            "a signal handler would run on a stack in persistent memory ({at:#x}), which is not supported"
        );
    }

    let mut image = SignalFrame { restorer: action.restorer, context: *context, info: kept.info };
    image.context.link = 0;
    image.context.stack = thread.signals.alternate.save();
    image.context.mask = thread.signals.mask.0;
    let machine = &mut image.context.machine;
    machine.set_regs(&state.regs);
    machine.rip = state.pc;
    machine.eflags = state.flags;
    machine.err = kept.err;
    machine.trapno = kept.trapno;
    machine.cr2 = kept.cr2;
    machine.oldmask = thread.signals.mask.0;
    machine.fpstate = if fp_len == 0 { 0 } else { fpstate };

    // SAFETY: below the program's stack pointer and red zone, or its alternate stack: what the kernel would overwrite.
    let written = unsafe {
        careful::copy(fpstate, context.machine.fpstate, fp_len as usize)
            && careful::copy(at, &raw const image as u64, size_of::<SignalFrame>())
    };
    crate::flow::kernel::wrote(thread, at, sp - at);
    let offset = |field: usize| at + field as u64;
    written.then_some(Placed {
        frame: at,
        info: offset(core::mem::offset_of!(SignalFrame, info)),
        context: offset(core::mem::offset_of!(SignalFrame, context)),
    })
}
