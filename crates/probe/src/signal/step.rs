//! Delivers a signal as soon as the program's state is available, single-stepping to that point if necessary.

use super::abi::{Context, TRAP_FLAG};
use super::deliver::{self, ProgramState};
use super::set::SignalSet;
use super::state::Kept;
use super::{blocking, leave};
use crate::flow;
use crate::layout;
use crate::thread::{Place, Thread};
use crate::trampoline::pass;
use crate::translate::{self, Where};

/// Where a signal found the thread.
#[derive(Debug)]
enum Found {
    /// The program's state is at hand.
    Ready(ProgramState),
    /// Right before a system call that may wait; go on at this address.
    NotBegun(u64),
    /// The engine will come to its way out.
    Engine,
    /// Inside a sequence of translated code, or in a trampoline that returns into one.
    Inside,
}

pub fn in_image(rip: u64) -> bool {
    (layout::IMAGE..layout::CONTROL).contains(&rip)
}

/// What the cache address means. Only for a thread that runs translated code: it does not hold the engine lock.
pub fn locate(rip: u64) -> Option<Where> {
    let _guard = translate::lock().lock();
    translate::locate(rip)
}

fn find(thread: &mut Thread, context: &Context) -> Found {
    let rip = context.machine.rip;
    if !in_image(rip) {
        return match locate(rip) {
            Some(Where::Clean { pc } | Where::Spilled { pc, .. }) if flow::cut::is_told(thread, rip, pc) => {
                Found::Inside
            }
            Some(Where::Clean { pc }) => {
                let mut state = ProgramState::from_machine(&context.machine, pc);
                flow::cut::leave(thread, rip, pc, &mut state.regs);
                Found::Ready(state)
            }
            Some(Where::Spilled { pc, reg, slot }) => {
                let mut state = ProgramState::from_machine(&context.machine, pc);
                state.regs.set(reg, spilled(thread, slot));
                flow::cut::leave(thread, rip, pc, &mut state.regs);
                Found::Ready(state)
            }
            _ => Found::Inside,
        };
    }
    if leave::is_leaving(rip) {
        return Found::Ready(ProgramState::from_structure(thread));
    }
    if let Some(elsewhere) = blocking::not_begun(rip) {
        return Found::NotBegun(elsewhere);
    }
    let trampolines = pass::trampoline_exit as *const () as u64..pass::trampoline_enter as *const () as u64;
    if trampolines.contains(&rip) {
        return Found::Engine;
    }
    let call = pass::trampoline_call as *const () as u64..pass::trampoline_call_end as *const () as u64;
    if call.contains(&rip) {
        return Found::Inside;
    }
    // The trampolines that end in the way out call Rust from the top of the engine stack, so the topmost word is an address
    // of the engine. Those that return into a block were called from the cache: the topmost word is not. A thread that
    // has never run anything has a zero there.
    // SAFETY: the engine stack is mapped up to `engine_rsp`.
    let top = unsafe { *((thread.engine_rsp - 8) as *const u64) };
    if top == 0 || in_image(top) { Found::Engine } else { Found::Inside }
}

/// A register that translated code put away.
pub fn spilled(thread: &Thread, slot: usize) -> u64 {
    // SAFETY: `slot` is the offset of a u64 field of the structure.
    unsafe { *((thread.this + slot as u64) as *const u64) }
}

/// Delivers the signal, or keeps it and sees to it that it is delivered soon. Nothing else arrives in between.
pub fn deliver_when_possible(thread: &mut Thread, context: &mut Context, kept: Kept) {
    let found = find(thread, context);
    if let Found::Ready(state) = found {
        return deliver::deliver(thread, context, state, &kept);
    }
    thread.signals.kept = Some(kept);
    thread.signal_waits = 1;
    context.mask = SignalSet::ALL.real().0;
    let stepping = matches!(found, Found::Inside);
    thread.signals.stepping = stepping;
    if stepping {
        context.machine.eflags |= TRAP_FLAG;
        if thread.place == Place::Engine {
            // On the way back into the block `trampoline_call` loads these.
            thread.flags |= TRAP_FLAG;
        }
    } else {
        context.machine.eflags &= !TRAP_FLAG;
    }
    if let Found::NotBegun(elsewhere) = found {
        context.machine.rip = elsewhere;
    }
}

/// One step further.
pub fn stepped(thread: &mut Thread, context: &mut Context) {
    match thread.signals.kept.take() {
        Some(kept) => deliver_when_possible(thread, context, kept),
        None => {
            thread.signals.stepping = false;
            context.machine.eflags &= !TRAP_FLAG;
        }
    }
}
