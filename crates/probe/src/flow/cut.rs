//! Leaving a block before its end.

use alloc::boxed::Box;

use crate::thread::{Regs, Thread};
use crate::translate::emit::Reg;
use crate::translate::{self, arena, block};

/// What must be known of a block to cut its entry.
#[derive(Debug)]
pub struct Entry {
    /// The register that holds the buffer's position while the entry is open, and the one for addresses (`NO_REG`: none).
    pub x: Reg,
    pub y: Reg,
    /// Lengths of its instructions.
    pub lengths: Box<[u8]>,
    /// Words logged by the first n instructions.
    pub words: Box<[u16]>,
    /// Instructions that run while the entry is open: all, or all but the last.
    pub open: usize,
    /// Cache address at which the entry is closed.
    pub closed_at: u64,
    /// Where the stubs of the exits begin: there the last instruction has run.
    pub stubs_at: u64,
}

/// A thread leaves the block at cache address `rip`; the program's pc is `pc`, that instruction has not run. Puts the program's
/// registers in place and cuts the entry to what was executed.
pub fn leave(thread: &mut Thread, rip: u64, pc: u64, regs: &mut Regs) {
    if thread.flow.start == 0 {
        return;
    }
    let _guard = translate::lock().lock();
    let Some(block) = arena::block_at(rip).map(block::get) else { return };
    let Some(entry) = &block.flow else { return };
    let mut at = block.pc;
    let mut done = 0;
    while done < entry.lengths.len() && at != pc {
        at += u64::from(entry.lengths[done]);
        done += 1;
    }
    let all = entry.lengths.len();
    if rip < entry.closed_at {
        regs.set(entry.x, thread.flow.x);
        if entry.y != translate::learned::NO_REG {
            regs.set(entry.y, thread.flow.y);
        }
        shorten(thread, entry, done, all);
    } else if done < all && rip < entry.stubs_at {
        // At the last instruction, which does not run: the entry is closed already,
        if thread.flow.at == thread.flow.start {
            // and gone.
            thread.flow.told = true;
            return;
        }
        thread.flow.at -= 8 * (1 + u64::from(entry.words[all]));
        shorten(thread, entry, done.min(entry.open), all);
    }
}

/// The entry at `flow.at` becomes one of the first `done` instructions.
fn shorten(thread: &mut Thread, entry: &Entry, done: usize, all: usize) {
    if done == 0 {
        return;
    }
    if done < all {
        // The upper half: instructions executed. A whole entry has all bits set there.
        // SAFETY: the entry's first word, in the thread's own buffer.
        unsafe { ((thread.flow.at + 4) as *mut u32).write(wire::record::flow::part(done as u32)) };
    }
    thread.flow.at += 8 * (1 + u64::from(entry.words[done]));
}

/// Of the block at this cache address.
pub fn position_register(rip: u64) -> Option<Reg> {
    let _guard = translate::lock().lock();
    let block = block::get(arena::block_at(rip)?);
    block.flow.as_ref().map(|entry| entry.x)
}
