//! Micro-operations: what an instruction does with labels, with everything that is the same at every execution worked out.

use isa::flow::Place;
use trace::event::CodeAddr;

use crate::registers::{Part, RegisterNo, SourceRegister};

/// What a micro-operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MicroOpKind {
    /// The sources go to the destinations.
    Compute,
    /// As `Compute`, with what memory has.
    Load,
    /// The sources go to memory.
    Store,
    /// As `Load`; the result goes to memory, too.
    Modify,
    /// Memory and the first destination change places; so do the first source and the first destination.
    ExchangeMemory,
    Exchange,
    /// The address goes to a place of the thread's where the micro-operation of a string instruction finds it.
    Note(Noted),
    /// `movs` of `len` bytes each from the noted source to the address; then `stos`, `lods`, `scas`, `cmps`.
    Copy {
        repeats: bool,
    },
    Fill {
        repeats: bool,
    },
    Fetch {
        repeats: bool,
    },
    Scan {
        repeats: bool,
    },
    Compare {
        repeats: bool,
    },
    /// `cld`, `std`.
    Direction {
        backwards: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    Source = 0,
    Count = 1,
    Remaining = 2,
}

/// Which flags an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FlagsWritten {
    pub carry: bool,
    /// All others, zero at least.
    pub others: bool,
    /// Some of the others: what they carried stays.
    pub some: bool,
}

impl FlagsWritten {
    pub fn any(self) -> bool {
        self.carry || self.others || self.some
    }
}

/// How an address follows from the words of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    slot: u16,
    plus: u64,
}

impl Address {
    /// The slot of an address that is the same in every run.
    const FIXED: u16 = u16::MAX;
    pub const NONE: Address = Address { slot: Self::FIXED, plus: 0 };

    pub fn new(place: Place, more: i64) -> Self {
        match place {
            Place::Fixed(value) => Address { slot: Self::FIXED, plus: value.wrapping_add_signed(more) },
            Place::Slot { slot, plus } => Address { slot, plus: plus.wrapping_add_signed(more) },
        }
    }

    /// A block whose log was cut has no word for what did not happen.
    #[inline]
    pub fn resolve(self, words: &[u64]) -> u64 {
        if self.slot == Self::FIXED {
            return self.plus;
        }
        words.get(self.slot as usize).copied().unwrap_or(0).wrapping_add(self.plus)
    }
}

/// A micro-operation.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub address: Address,
    pub kind: MicroOpKind,
    /// Bytes of memory, or of an element of a string.
    pub len: u16,
    /// Where its instruction begins, in bytes from the block's start.
    pub at: u16,
    /// Registers that the address comes from.
    pub base: SourceRegister,
    pub index: SourceRegister,
    pub sources: [SourceRegister; 3],
    pub to: [RegisterNo; 2],
    /// Of the first destination; the second is written whole.
    pub part: Part,
    pub flags: FlagsWritten,
}

impl Op {
    pub fn new(kind: MicroOpKind, at: u16) -> Self {
        Op {
            address: Address::NONE,
            kind,
            len: 0,
            at,
            base: SourceRegister::NONE,
            index: SourceRegister::NONE,
            sources: [SourceRegister::NONE; 3],
            to: [RegisterNo::NOWHERE; 2],
            part: Part::Whole,
            flags: FlagsWritten::default(),
        }
    }

    /// A plain move into registers: the result is what was read, nothing was computed.
    pub fn is_move(&self) -> bool {
        self.sources == [SourceRegister::NONE; 3] && !self.flags.any()
    }
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Goes on, or jumps to the one place that it can.
    Plain,
    /// One of two ways, by what is in these.
    Branch([SourceRegister; 3]),
    /// To where this says.
    Indirect(SourceRegister),
    /// The address is where the return address is put.
    Call(Address),
    /// The address is where the return address is taken from.
    Return(Address),
}

/// A block, compiled.
#[derive(Clone, Debug)]
pub struct Block {
    pub pc: u64,
    pub bytes: u32,
    pub code: CodeAddr,
    pub ops: Vec<Op>,
    /// Per instruction: its offset, and its first micro-operation; one more for the end.
    pub instructions: Vec<(u16, u32)>,
    pub end: End,
}

impl Block {
    /// Where the instruction at this offset is in its module.
    pub fn code_at(&self, at: u16) -> CodeAddr {
        CodeAddr { addr: self.code.addr + u64::from(at), ..self.code }
    }

    /// The instruction that begins there.
    pub fn instruction_at(&self, pc: u64) -> Option<usize> {
        let offset = u16::try_from(pc.checked_sub(self.pc)?).ok()?;
        let found = self.instructions.binary_search_by_key(&offset, |&(offset, _)| offset);
        found.ok().filter(|&number| number + 1 < self.instructions.len())
    }

    /// The address of its last instruction.
    pub fn last_pc(&self) -> u64 {
        let last = self.instructions.len().checked_sub(2);
        self.pc + last.map_or(0, |last| u64::from(self.instructions[last].0))
    }
}
