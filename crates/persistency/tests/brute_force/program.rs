//! Random tiny programs, already interleaved: a list of operations with their threads.
//!
//! Three lines are used, two neighbours and one on another page, and in each line six cells of four bytes: both halves
//! of the granules 0, 1 and 7. That is enough for stores that share a granule, cross a granule, cross a line.

use trace::event::{FenceKind, FlushKind, PoolOffset, StoreKind};

pub const LINES: usize = 3;
pub const CELLS: usize = 6;
/// The pool's lines that stand for line 0, 1, 2.
pub const LINE_NUMBERS: [u64; LINES] = [0, 1, 64];
/// Where the cells of a line begin.
pub const CELL_STARTS: [u64; CELLS] = [0, 4, 8, 12, 56, 60];
/// The granule of each cell, numbered from 0.
pub const CELL_GRANULES: [usize; CELLS] = [0, 0, 1, 1, 2, 2];

/// The value of each cell: the number of the store that wrote it, 0 before all.
pub type Image = [[u8; CELLS]; LINES];

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    Instruction(StoreKind),
    Rmw,
    Kernel,
    File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Writes `value` to cells `first..first + cells` of the line; past its last cell it goes on in the next.
    Store {
        by: Writer,
        line: usize,
        first: usize,
        cells: usize,
        value: u8,
    },
    Flush {
        kind: FlushKind,
        line: usize,
    },
    Fence(FenceKind),
    /// The page of this line.
    Msync {
        line: usize,
    },
    Fsync,
    /// The file system zeroes the whole line.
    Zero {
        line: usize,
    },
    /// The file is cut so that this line and those after it are gone, and grows back.
    Cut {
        line: usize,
    },
    ThreadEnd,
}

#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub thread: u32,
    pub act: Act,
}

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub ops: usize,
    pub threads: usize,
}

#[derive(Debug)]
pub struct Program {
    pub ops: Vec<Op>,
}

pub fn offset(line: usize, cell: usize) -> PoolOffset {
    PoolOffset(LINE_NUMBERS[line] * 64 + CELL_STARTS[cell])
}

impl Program {
    pub fn random(rng: &mut Rng, shape: Shape) -> Program {
        let mut ops = Vec::new();
        let mut threads: Vec<u32> = (0..1 + rng.below(shape.threads) as u32).collect();
        let mut next_thread = shape.threads as u32;
        let lines = 1 + rng.below(LINES);
        let mut value = 0;
        let count = 1 + rng.below(shape.ops);
        for _ in 0..count {
            let who = rng.below(threads.len());
            let act = match rng.below(64) {
                0..28 => {
                    value = value % 250 + 1;
                    random_store(rng, lines, value)
                }
                28..44 => {
                    let kinds = [FlushKind::Clwb, FlushKind::Clwb, FlushKind::Clflushopt, FlushKind::Clflush];
                    let kind = if rng.below(12) == 0 { FlushKind::Cldemote } else { kinds[rng.below(4)] };
                    Act::Flush { kind, line: rng.below(lines) }
                }
                44..58 => Act::Fence([FenceKind::Sfence, FenceKind::Mfence, FenceKind::Locked][rng.below(3)]),
                58..60 => Act::Msync { line: rng.below(lines) },
                60 => Act::Fsync,
                61 => Act::Zero { line: rng.below(lines) },
                62 => Act::Cut { line: rng.below(lines) },
                _ => Act::ThreadEnd,
            };
            ops.push(Op { thread: threads[who], act });
            if act == Act::ThreadEnd {
                threads[who] = next_thread;
                next_thread += 1;
            }
        }
        Program { ops }
    }
}

fn random_store(rng: &mut Rng, lines: usize, value: u8) -> Act {
    let line = rng.below(lines);
    let by = match rng.below(16) {
        0..8 => Writer::Instruction(StoreKind::Plain),
        8..12 => Writer::Instruction(StoreKind::NonTemporal),
        12 => Writer::Instruction(StoreKind::Direct64),
        13 => Writer::Rmw,
        14 => Writer::Kernel,
        _ => Writer::File,
    };
    if by == Writer::Instruction(StoreKind::Direct64) {
        return Act::Store { by, line, first: 0, cells: CELLS, value };
    }
    let (first, cells) = match rng.below(8) {
        0..2 => (rng.below(CELLS), 1),
        2..4 => (2 * rng.below(3), 2),
        4 => (0, 4),
        5 => (1, 2),
        // Across the boundary of lines 0 and 1: the last granule and the first.
        6 if line == 0 && lines > 1 => (4, 4),
        _ => (0, 2),
    };
    Act::Store { by, line, first, cells, value }
}

/// The cells that a store writes, per line that it touches.
pub fn parts(line: usize, first: usize, cells: usize) -> Vec<(usize, std::ops::Range<usize>)> {
    if first + cells <= CELLS {
        vec![(line, first..first + cells)]
    } else {
        vec![(line, first..CELLS), (line + 1, 0..first + cells - CELLS)]
    }
}
