//! Leaving a block before its end.

use alloc::boxed::Box;

use crate::thread::{Regs, Thread};
use crate::translate::block::Block;
use crate::translate::emit::Reg;
use crate::translate::{self, arena, block};

/// What must be known of a block to cut its entry.
#[derive(Debug)]
pub struct BlockEntry {
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

impl BlockEntry {
    /// How many of the block's instructions have run when `pc` is next.
    fn done(&self, start: u64, pc: u64) -> usize {
        let mut at = start;
        self.lengths
            .iter()
            .take_while(|length| {
                let before = at != pc;
                at += u64::from(**length);
                before
            })
            .count()
    }

    /// At the last instruction, which has not run though the entry is closed?
    fn is_at_last(&self, rip: u64, done: usize) -> bool {
        (self.closed_at..self.stubs_at).contains(&rip) && done == self.open && done < self.lengths.len()
    }
}

/// Is the thread before an instruction that was told already, so that it must not be interrupted now?
pub fn is_told(thread: &Thread, rip: u64, pc: u64) -> bool {
    if thread.flow.start == 0 || thread.flow.at != thread.flow.start {
        return false;
    }
    let _guard = translate::lock().lock();
    let Some(number) = arena::block_at(rip) else { return false };
    block::with(number, |block| {
        block.flow.as_ref().is_some_and(|entry| entry.is_at_last(rip, entry.done(block.pc, pc)))
    })
}

/// A thread leaves the block at cache address `rip`; the program's pc is `pc`, that instruction has not run. Puts the program's
/// registers in place and cuts the entry to what was executed.
pub fn leave(thread: &mut Thread, rip: u64, pc: u64, regs: &mut Regs) {
    if thread.flow.start == 0 {
        return;
    }
    let _guard = translate::lock().lock();
    let Some(number) = arena::block_at(rip) else { return };
    block::with(number, |block| cut(thread, block, rip, pc, regs));
}

fn cut(thread: &mut Thread, block: &Block, rip: u64, pc: u64, regs: &mut Regs) {
    let Some(entry) = &block.flow else { return };
    let done = entry.done(block.pc, pc);
    let all = entry.lengths.len();
    if rip < entry.closed_at {
        regs.set(entry.x, thread.flow.x);
        if entry.y != translate::instrumented::NO_REG {
            regs.set(entry.y, thread.flow.y);
        }
        shorten(thread, entry, done, all);
    } else if entry.is_at_last(rip, done) {
        // The entry is closed already,
        if thread.flow.at == thread.flow.start {
            // and gone.
            thread.flow.told = true;
            return;
        }
        thread.flow.at -= 8 * (1 + u64::from(entry.words[all]));
        shorten(thread, entry, done, all);
    }
}

/// The entry at `flow.at` becomes one of the first `done` instructions.
fn shorten(thread: &mut Thread, entry: &BlockEntry, done: usize, all: usize) {
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
    block::with(arena::block_at(rip)?, |block| block.flow.as_ref().map(|entry| entry.x))
}
