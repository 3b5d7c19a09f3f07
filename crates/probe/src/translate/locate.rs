//! Maps an address in a code cache to the program's address and state.

use core::mem::offset_of;

use super::block::{self, Block};
use super::marks::Flavour;
use super::{arena, emit::Reg};
use crate::thread::{Regs, Thread};

/// The program's state at a cache address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// The machine's registers are the program's; the instruction at `pc` has not been executed.
    Clean { pc: u64 },
    /// As `Clean`, but register `reg` must first be loaded from the word at gs offset `slot`.
    Spilled { pc: u64, reg: Reg, slot: usize },
    /// The instruction at `pc` is accessing the alias; `undo` gives the state before it.
    Alias { pc: u64, reg: Reg },
    /// Inside instrumentation: let it run on.
    Busy,
}

/// `None`: not in a code cache. The engine lock is held.
pub fn locate(rip: u64) -> Option<Where> {
    let number = arena::block_at(rip)?;
    block::with(number, |block| place_in(block, rip))
}

fn place_in(block: &Block, rip: u64) -> Option<Where> {
    if !(block.code..block.code_end).contains(&rip) {
        return Some(Where::Busy);
    }
    let at = (rip - block.code) as u16;
    let Some(mark) = block.marks.at(at) else { return Some(Where::Busy) };
    let pc = block.pc.wrapping_add_signed(mark.pc as i64);
    Some(match mark.flavour {
        // A mark speaks of the instruction right at it. Further in, the sequence has begun, unless it has no other
        // effect before its one access: those have a mark of their own.
        Flavour::Clean if mark.at == at => Where::Clean { pc },
        Flavour::Spilled if mark.at == at => Where::Spilled { pc, reg: mark.reg, slot: offset_of!(Thread, t0) },
        Flavour::SpilledT1 if mark.at == at => Where::Spilled { pc, reg: mark.reg, slot: offset_of!(Thread, t1) },
        Flavour::Alias if mark.at == at => Where::Alias { pc, reg: mark.reg },
        _ => Where::Busy,
    })
}

/// Puts back what the instrumentation at an [`Where::Alias`] changed, and gives up the order lock: the instruction faulted.
pub fn undo(thread: &mut Thread, reg: Reg, regs: &mut Regs) {
    thread.shifted.undo(regs);
    if reg != super::instrumented::NO_REG {
        regs.set(reg, thread.t0);
    }
    if thread.holds_order != 0 {
        thread.holds_order = 0;
        crate::ring::control().order_lock.store(0, core::sync::atomic::Ordering::Release);
    }
}
