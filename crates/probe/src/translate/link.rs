//! From block to block: exits and how they are linked, the branch table, and where a thread continues.

use alloc::vec::Vec;

use super::block::{self, NONE};
use super::emit::{self, Emit};
use super::guarded::UnderEngineLock;
use super::{arena, build};
use crate::layout;
use crate::sys::{self, PROT_READ, PROT_WRITE};
use crate::thread::Thread;
use crate::trampoline::pass;

/// A direct branch out of a block.
#[derive(Clone, Copy, Debug)]
struct Exit {
    /// Its rel32 in the cache.
    displacement: u64,
    /// Where the program goes.
    target: u64,
    /// The stub that leaves for the engine: where the branch goes while it is not linked.
    stub: u64,
    /// The block it is linked to.
    to: u32,
    /// The next exit linked to the same block.
    next: u32,
}

static EXITS: UnderEngineLock<Vec<Exit>> = UnderEngineLock::new(Vec::new());

/// One exit, for a look or a change.
fn exit<R>(number: u32, change: impl FnOnce(&mut Exit) -> R) -> R {
    EXITS.with(|exits| change(&mut exits[number as usize]))
}

/// Maps the branch table, every entry to the trampoline for unknown targets.
pub fn init() {
    sys::map_anonymous(layout::BRANCH_TABLE, layout::BRANCH_TABLE_BYTES, PROT_READ | PROT_WRITE);
    clear_table();
}

fn table() -> *mut u64 {
    layout::BRANCH_TABLE as *mut u64
}

fn clear_table() {
    for i in 0..1usize << 16 {
        // SAFETY: the table has 65536 entries; other threads read them as whole words.
        unsafe { table().add(i).write_volatile(pass::trampoline_miss as *const () as u64) };
    }
}

pub fn add(displacement: u64, target: u64, stub: u64) -> u32 {
    EXITS.with(|exits| {
        exits.push(Exit { displacement, target, stub, to: NONE, next: NONE });
        exits.len() as u32 - 1
    })
}

/// The thread left a block through exit `arg`: finds or makes the next block and links the two.
pub fn take_exit(thread: &mut Thread) {
    let _guard = super::lock().lock();
    let number = thread.arg as u32;
    let target = exit(number, |exit| exit.target);
    thread.pc = target;
    let to = find_or_build(thread, target, false);
    thread.resume = block::entry(to);
    link(number, to);
}

/// Lets an exit lead to the block of its target, if it does not yet.
fn link(number: u32, to: u32) {
    let entry = block::entry(to);
    let Exit { displacement, to: linked, .. } = exit(number, |exit| *exit);
    if linked != NONE || !arena::is_in_use(displacement) {
        return;
    }
    let from = if emit::reaches(displacement, entry) { entry } else { hop(displacement, entry) };
    if from == 0 {
        return;
    }
    let next = block::with(to, |block| core::mem::replace(&mut block.incoming, number));
    exit(number, |exit| {
        exit.to = to;
        exit.next = next;
    });
    emit::patch(displacement, from);
}

/// Links every exit whose target is translated, as if it had been taken: forks inherit that, and need not do it again, which would
/// cost each a copy of every page of code that it links.
pub fn link_all() {
    let _guard = super::lock().lock();
    for number in 0..EXITS.with(|exits| exits.len()) as u32 {
        let Exit { target, to, .. } = exit(number, |exit| *exit);
        if to == NONE
            && let Some(block) = block::find(target)
        {
            link(number, block);
        }
    }
}

/// A `jmp [rip]` near the branch for a block in another arena; 0: no room.
fn hop(displacement: u64, entry: u64) -> u64 {
    let Some(index) = arena::at(displacement) else { return 0 };
    arena::with(index, |arena| {
        let mut emit = Emit { at: arena.at, end: arena.end, full: false };
        emit.bytes(&[0xff, 0x25, 0, 0, 0, 0]);
        emit.u64(entry);
        if emit.full {
            return 0;
        }
        // It belongs to no block; a signal in it is still "at the entry of" the next block: `locate` knows hops.
        core::mem::replace(&mut arena.at, emit.at)
    })
}

/// The thread goes on at `thread.pc`.
pub fn go_on(thread: &mut Thread) {
    let _guard = super::lock().lock();
    let number = find_or_build(thread, thread.pc, false);
    thread.resume = block::entry(number);
}

/// As [`go_on`], for an indirect branch that the table did not know: it will next time.
pub fn arrive(thread: &mut Thread) {
    let _guard = super::lock().lock();
    crate::cover::arrived(thread.pc);
    let number = find_or_build(thread, thread.pc, true);
    thread.resume = block::entry(number);
    if !has_landing(number) {
        super::hints::translated(thread.pc);
        make_landing(thread, number);
    }
    if has_landing(number) {
        enter_into_table(number);
    }
}

/// Can indirect branches enter the block?
fn has_landing(number: u32) -> bool {
    block::with(number, |block| block.indirect != 0)
}

/// Makes the code at `pc` ready for indirect branches, if it is still there.
pub fn prepare(thread: &mut Thread, pc: u64) {
    let _guard = super::lock().lock();
    if super::code::bytes(pc).is_none() {
        return;
    }
    let number = find_or_build(thread, pc, true);
    if !has_landing(number) {
        make_landing(thread, number);
    }
    if has_landing(number) {
        enter_into_table(number);
    }
}

fn find_or_build(thread: &mut Thread, pc: u64, indirect: bool) -> u32 {
    // This thread is outside the cache and about to enter the present generation of it.
    thread.generation = arena::generation();
    match block::find(pc) {
        Some(number) => number,
        None => {
            if arena::is_full() || arena::for_code(pc).is_none() {
                start_over(thread);
            }
            super::hints::translated(pc);
            build::build(thread, pc, indirect)
        }
    }
}

/// The caches are full. Nobody enters the old code any more; it goes when no thread can be in it.
fn start_over(thread: &mut Thread) {
    block::unlink_all();
    arena::retire_all();
    thread.generation = arena::generation();
    let mut oldest = u64::MAX;
    crate::thread::each(|t| {
        if t.place == crate::thread::Place::Cache {
            oldest = oldest.min(t.generation);
        }
    });
    arena::reclaim(oldest);
}

/// A landing for a block that was first reached directly: checks the target, then jumps to the block.
fn make_landing(thread: &mut Thread, number: u32) {
    if let Some((at, chain)) = build::landing_stub(thread, number) {
        block::with(number, |block| {
            block.indirect = at;
            block.chain = chain;
        });
    }
}

/// The slot of the branch table for a target.
fn slot(pc: u64) -> *mut u64 {
    // SAFETY: the index is 16 bits; the table has 65536 entries.
    unsafe { table().add(pc as u16 as usize) }
}

/// The blocks that a branch with this table index tries, in order.
fn chain(pc: u64) -> Vec<u32> {
    let mut blocks = Vec::new();
    // SAFETY: a slot of the table.
    let mut at = unsafe { slot(pc).read_volatile() };
    while let Some(number) = arena::block_at(at) {
        let (indirect, chain) = block::with(number, |block| (block.indirect, block.chain));
        if indirect != at {
            break;
        }
        blocks.push(number);
        // SAFETY: the displacement of a chain jump in the cache.
        let distance = unsafe { (chain as *const i32).read_unaligned() };
        at = (chain + 4).wrapping_add_signed(distance as i64);
    }
    blocks
}

/// Puts a block in front of the chain for its table index.
fn enter_into_table(number: u32) {
    let (pc, arena, own_chain, indirect, is_in_table) =
        block::with(number, |block| (block.pc, block.arena, block.chain, block.indirect, block.is_in_table));
    if is_in_table {
        return;
    }
    // SAFETY: a slot of the table.
    let first = unsafe { slot(pc).read_volatile() };
    // Whoever was first becomes the next of this one, if in reach; else the chain ends at the trampoline, which finds any block.
    let is_block = first != pass::trampoline_miss as *const () as u64;
    let is_linked = is_block && emit::reaches(own_chain, first);
    if is_block && !is_linked {
        for member in chain(pc) {
            block::with(member, |member| member.is_in_table = false);
        }
    }
    emit::patch(own_chain, if is_linked { first } else { arena::miss(arena) });
    block::with(number, |block| block.is_in_table = true);
    // SAFETY: as above; one aligned word.
    unsafe { slot(pc).write_volatile(indirect) };
}

/// Nobody shall enter this block any more.
pub fn unlink(number: u32) {
    let (mut at, pc) = block::with(number, |block| (core::mem::replace(&mut block.incoming, NONE), block.pc));
    while at != NONE {
        at = exit(at, |exit| {
            emit::patch(exit.displacement, exit.stub);
            exit.to = NONE;
            core::mem::replace(&mut exit.next, NONE)
        });
    }
    if has_landing(number) {
        // Its whole chain is taken apart; the trampoline puts together what is still needed.
        let chain = chain(pc);
        // SAFETY: a slot of the table; one aligned word.
        unsafe { slot(pc).write_volatile(pass::trampoline_miss as *const () as u64) };
        for member in chain {
            let (displacement, arena) = block::with(member, |member| {
                member.is_in_table = false;
                (member.chain, member.arena)
            });
            emit::patch(displacement, arena::miss(arena));
        }
    }
    block::forget(number);
}
