//! Blocks: what was translated, where its code is, and how cache addresses map back to the program's.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::map::U64Map;

/// What a machine address in a block means (see [`super::locate`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Flavour {
    /// The program's registers are in the machine; the instruction at pc is next.
    Clean,
    /// As clean, but one register is in the spill slot `t0`.
    Spilled,
    /// The same with the slot `t1`.
    SpilledT1,
    /// The instruction's own access to the alias: the register is in `t0`, flags may be in `t2`.
    Alias,
    /// Inside instrumentation.
    Busy,
}

/// From `at` (offset in the block's code) on, this holds, up to the next mark.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub at: u16,
    pub flavour: Flavour,
    pub reg: u8,
    /// pc relative to the block's.
    pub pc: i32,
}

#[derive(Debug)]
pub struct Block {
    pub pc: u64,
    /// Start and end of its code in the cache.
    pub code: u64,
    pub code_end: u64,
    /// Where direct jumps enter.
    pub entry: u64,
    /// Where indirect branches enter (verifies the target); 0: none yet.
    pub indirect: u64,
    /// Displacement of the jump to the next block with the same table index; 0 without `indirect`.
    pub chain: u64,
    pub marks: Box<[Mark]>,
    /// First exit that is linked to this block (see `link::Exit::next`); `NONE` if none.
    pub incoming: u32,
    pub dead: bool,
    pub arena: u32,
    /// In flow mode: how to cut its entry.
    pub flow: Option<Box<crate::flow::cut::Entry>>,
}

pub const NONE: u32 = u32::MAX;

/// Which blocks contain code of a page of the program: a list per page.
#[derive(Clone, Copy, Debug)]
struct PageUse {
    block: u32,
    next: u32,
}

static mut PAGE_USES: Vec<PageUse> = Vec::new();
static mut BY_PAGE: U64Map<u32> = U64Map::new();

static mut BLOCKS: Vec<Block> = Vec::new();
static mut BY_PC: U64Map<u32> = U64Map::new();

fn blocks() -> &'static mut Vec<Block> {
    // SAFETY: the engine lock is held (or the world stands still: signal handler with this thread in the cache).
    unsafe { &mut *core::ptr::addr_of_mut!(BLOCKS) }
}

fn by_pc() -> &'static mut U64Map<u32> {
    // SAFETY: as above.
    unsafe { &mut *core::ptr::addr_of_mut!(BY_PC) }
}

pub fn find(pc: u64) -> Option<u32> {
    by_pc().get(pc)
}

pub fn get(number: u32) -> &'static mut Block {
    &mut blocks()[number as usize]
}

/// Adds a block that was made from code on these pages (page numbers).
pub fn add(block: Block, pages: &[u64]) -> u32 {
    let number = blocks().len() as u32;
    by_pc().insert(block.pc, number);
    blocks().push(block);
    // SAFETY: the engine lock is held.
    let (uses, by_page) = unsafe { (&mut *core::ptr::addr_of_mut!(PAGE_USES), &mut *core::ptr::addr_of_mut!(BY_PAGE)) };
    for &page in pages {
        uses.push(PageUse { block: number, next: by_page.get(page).unwrap_or(NONE) });
        by_page.insert(page, uses.len() as u32 - 1);
    }
    number
}

/// The live blocks with code of this page.
pub fn on_page(page: u64) -> Vec<u32> {
    // SAFETY: the engine lock is held.
    let (uses, by_page) = unsafe { (&*core::ptr::addr_of!(PAGE_USES), &*core::ptr::addr_of!(BY_PAGE)) };
    let mut found = Vec::new();
    let mut at = by_page.get(page).unwrap_or(NONE);
    while at != NONE {
        let PageUse { block, next } = uses[at as usize];
        if !get(block).dead {
            found.push(block);
        }
        at = next;
    }
    found
}

/// The live blocks that contain the instruction at `pc`.
pub fn with_instruction(pc: u64) -> Vec<u32> {
    let mut found = on_page(pc >> 12);
    found.retain(|&number| {
        let block = get(number);
        block.marks.iter().any(|m| block.pc.wrapping_add_signed(m.pc as i64) == pc)
    });
    found
}

/// The block is no longer found by its pc. Its code stays for threads that are in it.
pub fn forget(number: u32) {
    let block = get(number);
    block.dead = true;
    if by_pc().get(block.pc) == Some(number) {
        by_pc().remove(block.pc);
    }
}

/// Takes every block out of use. What `locate` needs stays while threads may be in their code.
pub fn unlink_all() {
    for number in 0..blocks().len() as u32 {
        if !get(number).dead {
            super::link::unlink(number);
        }
    }
    // SAFETY: the engine lock is held.
    unsafe {
        (*core::ptr::addr_of_mut!(PAGE_USES)).clear();
        (*core::ptr::addr_of_mut!(BY_PAGE)).clear();
    }
}
