//! Signals that an instruction raised. The engine causes most of them itself, as part of its work; the rest belong to the program.

use wire::control::option;

use super::abi::{
    ALIGNMENT_FLAG, Context, Info, PF_WRITE, SIGBUS, SIGSEGV, SIGTRAP, TRAP_ALIGNMENT, TRAP_PAGE_FAULT, TRAP_TRACE,
};
use super::deliver::{self, ProgramState};
use super::state::Kept;
use super::step::{self, spilled};
use super::{careful, end, leave};
use crate::flow;
use crate::layout;
use crate::pm;
use crate::ring::control;
use crate::thread::Thread;
use crate::trampoline::{peek, record};
use crate::translate::{self, Where};

pub fn raised(thread: &mut Thread, info: &Info, context: &mut Context) {
    let rip = context.machine.rip;
    if info.signo == SIGTRAP && info.code == TRAP_TRACE && thread.signals.stepping {
        return step::stepped(thread, context);
    }
    if step::in_image(rip) {
        return in_engine(thread, info, context);
    }
    let Some(place) = step::locate(rip) else { end::internal_error(thread, info, context) };
    if info.signo == SIGSEGV && context.machine.trapno == TRAP_PAGE_FAULT && is_ours(thread, context, place) {
        return;
    }
    programs_own(thread, info, context, place);
}

/// A fault in the engine: at one of the few instructions that may, or a mistake of ours.
fn in_engine(thread: &mut Thread, info: &Info, context: &mut Context) {
    let rip = context.machine.rip;
    if info.signo == SIGTRAP && leave::is_trap(rip) {
        let state = ProgramState::from_structure(thread);
        return match thread.signals.kept.take() {
            Some(kept) => deliver::deliver(thread, context, state, &kept),
            None => end::internal_error(thread, info, context),
        };
    }
    if info.signo == SIGBUS && context.machine.trapno == TRAP_ALIGNMENT {
        // The program switched the alignment check on. Its flags are saved; the engine goes on without.
        context.machine.eflags &= !ALIGNMENT_FLAG;
        return;
    }
    if info.signo == SIGSEGV || info.signo == SIGBUS {
        let probing = record::trampoline_record_probe_start as *const () as u64
            ..record::trampoline_record_probe_end as *const () as u64;
        let slow = probing.contains(&rip).then_some(record::trampoline_record_slow as *const () as u64);
        if let Some(elsewhere) = careful::recovery(rip).or_else(|| peek::recovery(rip)).or(slow) {
            context.machine.rip = elsewhere;
            return;
        }
    }
    end::internal_error(thread, info, context)
}

/// Page faults that the engine brought about: stores to PM that it does not know yet, and writes to translated code.
fn is_ours(thread: &mut Thread, context: &mut Context, place: Where) -> bool {
    let machine = &context.machine;
    let (rip, address, write) = (machine.rip, machine.cr2, machine.err & PF_WRITE != 0);
    if write && flow::buffer::is_full(thread, rip, address, |reg, value| set_register(context, reg, value)) {
        return true;
    }
    if pm::is_pm(address) && (write || control().options & option::LOADS != 0) {
        let Some(state) = state_at(thread, context, place) else { return false };
        translate::instrument(thread, state.pc);
        deliver::go_on(thread, context, &state);
        return true;
    }
    if write && translate::code::write_fault(thread, address) {
        if let Some(state) = state_at(thread, context, place) {
            deliver::go_on(thread, context, &state);
        }
        return true;
    }
    false
}

fn set_register(context: &mut Context, reg: u8, value: u64) {
    let mut regs = context.machine.regs();
    regs.set(reg, value);
    context.machine.set_regs(&regs);
}

/// The program's state before the instruction that raised the fault. The block is left.
fn state_at(thread: &mut Thread, context: &Context, place: Where) -> Option<ProgramState> {
    let machine = &context.machine;
    let mut state = match place {
        Where::Clean { pc } => ProgramState::from_machine(machine, pc),
        Where::Spilled { pc, reg, slot } => {
            let mut state = ProgramState::from_machine(machine, pc);
            state.regs.set(reg, spilled(thread, slot));
            state
        }
        Where::Alias { pc, reg } => {
            let mut state = ProgramState::from_machine(machine, pc);
            translate::undo(thread, reg, &mut state.regs);
            state
        }
        Where::Busy => return None,
    };
    flow::cut::leave(thread, machine.rip, state.pc, &mut state.regs);
    Some(state)
}

fn programs_own(thread: &mut Thread, info: &Info, context: &mut Context, place: Where) {
    let Some(state) = state_at(thread, context, place) else {
        if info.signo == SIGTRAP {
            // A trap comes after its instruction (`int3`): the next boundary is where the program is.
            let (err, trapno, cr2) = (context.machine.err, context.machine.trapno, context.machine.cr2);
            return step::deliver_when_possible(thread, context, Kept { info: *info, err, trapno, cr2, fault: true });
        }
        end::internal_error(thread, info, context)
    };
    let mut info = *info;
    let mut cr2 = context.machine.cr2;
    // The program knows nothing of aliases.
    let memory = info.signo == SIGSEGV || info.signo == SIGBUS;
    if memory && pm::is_pm(layout::alias(info.address)) {
        info.address = layout::alias(info.address);
        cr2 = info.address;
    }
    // For the others the address is that of the instruction.
    if !memory && info.address == context.machine.rip {
        info.address = state.pc;
    }
    let (err, trapno) = (context.machine.err, context.machine.trapno);
    deliver::deliver(thread, context, state, &Kept { info, err, trapno, cr2, fault: true });
}
