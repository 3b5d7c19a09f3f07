//! Blocks: what was translated, where its code is, and how cache addresses map back to the program's.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::guarded::UnderEngineLock;
use super::marks::Marks;
use crate::map::U64Map;

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
    /// Is it in the chain for its table index, so that indirect branches find it?
    pub is_in_table: bool,
    pub marks: Marks,
    /// First exit that is linked to this block (see `link::Exit::next`); `NONE` if none.
    pub incoming: u32,
    pub dead: bool,
    pub arena: u32,
    /// In flow mode: how to cut its entry.
    pub flow: Option<Box<crate::flow::cut::BlockEntry>>,
}

pub const NONE: u32 = u32::MAX;

/// Which blocks contain code of a page of the program: a list per page.
#[derive(Clone, Copy, Debug)]
struct PageUse {
    block: u32,
    next: u32,
}

/// All blocks, by number, and where they are found.
#[derive(Debug)]
struct Blocks {
    all: Vec<Block>,
    by_pc: U64Map<u32>,
    page_uses: Vec<PageUse>,
    by_page: U64Map<u32>,
}

static BLOCKS: UnderEngineLock<Blocks> = UnderEngineLock::new(Blocks {
    all: Vec::new(),
    by_pc: U64Map::new(),
    page_uses: Vec::new(),
    by_page: U64Map::new(),
});

pub fn find(pc: u64) -> Option<u32> {
    BLOCKS.with(|blocks| blocks.by_pc.get(pc))
}

/// One block, for a look or a change; `change` asks for no other.
pub fn with<R>(number: u32, change: impl FnOnce(&mut Block) -> R) -> R {
    BLOCKS.with(|blocks| change(&mut blocks.all[number as usize]))
}

/// Where direct jumps enter a block.
pub fn entry(number: u32) -> u64 {
    with(number, |block| block.entry)
}

/// Adds a block that was made from code on these pages (page numbers).
pub fn add(block: Block, pages: &[u64]) -> u32 {
    BLOCKS.with(|Blocks { all, by_pc, page_uses, by_page }| {
        let number = all.len() as u32;
        by_pc.insert(block.pc, number);
        all.push(block);
        for &page in pages {
            page_uses.push(PageUse { block: number, next: by_page.get(page).unwrap_or(NONE) });
            by_page.insert(page, page_uses.len() as u32 - 1);
        }
        number
    })
}

/// The live blocks with code of this page.
pub fn on_page(page: u64) -> Vec<u32> {
    BLOCKS.with(|blocks| {
        let mut found = Vec::new();
        let mut at = blocks.by_page.get(page).unwrap_or(NONE);
        while at != NONE {
            let PageUse { block, next } = blocks.page_uses[at as usize];
            if !blocks.all[block as usize].dead {
                found.push(block);
            }
            at = next;
        }
        found
    })
}

/// The live blocks that contain the instruction at `pc`.
pub fn with_instruction(pc: u64) -> Vec<u32> {
    let mut found = on_page(pc >> 12);
    let has = |block: &mut Block| block.marks.iter().any(|mark| block.pc.wrapping_add_signed(i64::from(mark.pc)) == pc);
    found.retain(|&number| with(number, has));
    found
}

/// The block is no longer found by its pc. Its code stays for threads that are in it.
pub fn forget(number: u32) {
    BLOCKS.with(|blocks| {
        let block = &mut blocks.all[number as usize];
        block.dead = true;
        if blocks.by_pc.get(block.pc) == Some(number) {
            blocks.by_pc.remove(block.pc);
        }
    });
}

/// Takes every block out of use. What `locate` needs stays while threads may be in their code.
pub fn unlink_all() {
    for number in 0..BLOCKS.with(|blocks| blocks.all.len()) as u32 {
        if !with(number, |block| block.dead) {
            super::link::unlink(number);
        }
    }
    BLOCKS.with(|blocks| {
        blocks.page_uses.clear();
        blocks.by_page.clear();
    });
}
