//! The words that are logged for a block, and how every value follows from them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register};

use super::logged::{Logged, destination_register, index_is_general, logged};
use super::track::{Track, Unknown};
use super::wanted::{Wanted, wanted};

/// Where a logged word comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// A 64-bit general register.
    Register(Register),
    /// `base + index * scale`, plus the base of the FS segment if `fs`. Registers are 64 bits wide or `None`.
    Sum { base: Register, index: Register, scale: u8, fs: bool },
    /// The whole operand of this instruction (a 67 prefix: 32-bit address arithmetic), segment base included.
    Operand { fs: bool },
    /// Values mode: the `part`-th eight bytes of a vector register.
    Vector { register: Register, part: u8 },
    /// An opmask register.
    Mask(Register),
    /// `len` bytes of what the memory operand has, from byte `from` on.
    Content { from: u8, len: u8 },
    /// Whether this condition holds, in the lowest byte; the others are undefined.
    Condition(u8),
}

/// When a word is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Before,
    After,
}

/// One logged word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedWord {
    pub root: Root,
    /// Taken right before or after this instruction of the block.
    pub instruction: u16,
    pub when: When,
}

/// How a value follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is this in every run.
    Fixed(u64),
    /// The word in this slot plus a constant.
    Slot { slot: u16, plus: u64 },
}

/// A value of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pub what: Logged,
    pub place: Place,
    /// The instruction accesses other bytes, or more of them, than its operand says (see [`super`]).
    pub opaque: bool,
}

impl Value {
    /// The value, given the words of the block. `None`: the block was cut before it was logged.
    #[inline]
    pub fn resolve(&self, words: &[u64]) -> Option<u64> {
        match self.place {
            Place::Fixed(value) => Some(value),
            Place::Slot { slot, plus } => words.get(slot as usize).map(|word| word.wrapping_add(plus)),
        }
    }
}

/// The log of a block: [`Layout::slots`] words, from which the values of its instructions follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    slots: Box<[LoggedWord]>,
    values: Box<[Value]>,
    /// Per instruction: where its values end in `values`.
    ends: Box<[u16]>,
    /// Of values mode, with the instruction that wants it.
    operands: Box<[(u16, Wanted, Place)]>,
}

/// What makes two addresses differ by a constant only.
type Key = (Unknown, Unknown, u8, bool);

impl Layout {
    /// Of the instructions of one block, decoded at their own addresses.
    pub fn new(instructions: &[Instruction]) -> Layout {
        Layout::make(instructions, false)
    }

    /// The same in values mode.
    pub fn with_values(instructions: &[Instruction]) -> Layout {
        Layout::make(instructions, true)
    }

    fn make(instructions: &[Instruction], values: bool) -> Layout {
        let mut factory = InstructionInfoFactory::new();
        let mut operands = Vec::new();
        let mut made = Making { slots: Vec::new(), values: Vec::new(), keys: Vec::new(), track: Track::new() };
        let mut ends = Vec::with_capacity(instructions.len());
        for (number, instruction) in instructions.iter().enumerate() {
            if values {
                for wanted in wanted(&mut factory, instruction).iter() {
                    operands.push((number as u16, wanted, made.wanted(number as u16, wanted)));
                }
            }
            for (what, opaque) in logged(instruction).iter() {
                let place = made.place(number as u16, instruction, what);
                made.values.push(Value { what, place, opaque });
            }
            ends.push(made.values.len() as u16);
            made.track.step(instruction);
        }
        Layout { slots: made.slots.into(), values: made.values.into(), ends: ends.into(), operands: operands.into() }
    }

    /// The logged words, in order.
    pub fn slots(&self) -> &[LoggedWord] {
        &self.slots
    }

    pub fn instructions(&self) -> usize {
        self.ends.len()
    }

    /// The values of instruction `number`.
    pub fn values(&self, number: usize) -> &[Value] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start as usize..self.ends[number] as usize]
    }

    /// Values mode: the operands of instruction `number`. Those of several words have them in a row, from the slot on.
    pub fn operands(&self, number: usize) -> impl Iterator<Item = (Wanted, Place)> + '_ {
        let start = self.operands.partition_point(|(at, ..)| usize::from(*at) < number);
        let own = self.operands[start..].iter().take_while(move |(at, ..)| usize::from(*at) == number);
        own.map(|&(_, wanted, place)| (wanted, place))
    }

    /// How many words the first `instructions` instructions log.
    pub fn words_of(&self, instructions: usize) -> usize {
        self.slots.partition_point(|slot| (slot.instruction as usize) < instructions)
    }
}

struct Making {
    slots: Vec<LoggedWord>,
    values: Vec<Value>,
    /// Of each slot: its key, and the constant that its word has beyond the unknowns. `None`: never used again.
    keys: Vec<Option<(Key, u64)>>,
    track: Track,
}

impl Making {
    fn place(&mut self, number: u16, instruction: &Instruction, what: Logged) -> Place {
        match what {
            Logged::Operand => self.operand(number, instruction),
            Logged::Stack if instruction.mnemonic() == Mnemonic::Leave => self.register(number, Register::RBP),
            Logged::Stack => self.register(number, Register::RSP),
            Logged::Source => self.register(number, Register::RSI),
            Logged::Destination => self.register(number, destination_register(instruction).unwrap_or(Register::RDI)),
            Logged::Count => self.register(number, Register::RCX),
            Logged::Remaining => self
                .add(LoggedWord { root: Root::Register(Register::RCX), instruction: number, when: When::After }, None),
        }
    }

    fn wanted(&mut self, number: u16, wanted: Wanted) -> Place {
        let slot = |root| LoggedWord { root, instruction: number, when: When::Before };
        match wanted {
            Wanted::Register(register) => self.register(number, register),
            Wanted::Mask(register) => self.add(slot(Root::Mask(register)), None),
            Wanted::Condition(condition) => self.add(slot(Root::Condition(condition)), None),
            Wanted::Vector(register) => {
                let first = self.add(slot(Root::Vector { register, part: 0 }), None);
                for part in 1..wanted.words() as u8 {
                    self.add(slot(Root::Vector { register, part }), None);
                }
                first
            }
            Wanted::Content { bytes } => {
                let first = self.add(slot(Root::Content { from: 0, len: bytes.min(8) }), None);
                for part in 1..wanted.words() as u8 {
                    self.add(slot(Root::Content { from: part * 8, len: (bytes - part * 8).min(8) }), None);
                }
                first
            }
        }
    }

    fn register(&mut self, number: u16, register: Register) -> Place {
        let register = register.full_register();
        self.sum(number, Root::Register(register), (register, Register::None, 1, false), 0)
    }

    fn operand(&mut self, number: u16, instruction: &Instruction) -> Place {
        let fs = instruction.segment_prefix() == Register::FS;
        if instruction.is_ip_rel_memory_operand() && !fs {
            return Place::Fixed(instruction.ip_rel_memory_address());
        }
        let (base, mut index) = (instruction.memory_base(), instruction.memory_index());
        if !index_is_general(instruction) {
            index = Register::None;
        }
        if base.is_gpr32() || index.is_gpr32() || base == Register::EIP || (base == Register::RIP && fs) {
            return self.add(LoggedWord { root: Root::Operand { fs }, instruction: number, when: When::Before }, None);
        }
        // `pop [rsp + x]` computes its address with the increased rsp (SDM, POP).
        let popped = if instruction.mnemonic() == Mnemonic::Pop && base == Register::RSP {
            instruction.stack_pointer_increment() as u64
        } else {
            0
        };
        let plus = instruction.memory_displacement64().wrapping_add(popped);
        let scale = if index == Register::None { 1 } else { instruction.memory_index_scale() as u8 };
        let root = match (base, index) {
            (base, Register::None) if base != Register::None && !fs => Root::Register(base),
            _ => Root::Sum { base, index, scale, fs },
        };
        self.sum(number, root, (base, index, scale, fs), plus)
    }

    /// A value that is `base + index * scale + plus`.
    fn sum(&mut self, number: u16, root: Root, parts: (Register, Register, u8, bool), plus: u64) -> Place {
        let (base, index, scale, fs) = parts;
        let of = |register: Register| match register {
            Register::None => (Unknown::ZERO, 0),
            register => {
                let sum = self.track.get(register);
                (sum.unknown, sum.plus)
            }
        };
        let ((base, base_plus), (index, index_plus)) = (of(base), of(index));
        let known = base_plus.wrapping_add(index_plus.wrapping_mul(scale.into()));
        if base == Unknown::ZERO && index == Unknown::ZERO && !fs {
            return Place::Fixed(known.wrapping_add(plus));
        }
        let key = (base, index, scale, fs);
        let same = self.keys.iter().position(|k| k.is_some_and(|(k, _)| k == key));
        if let Some((slot, Some((_, logged)))) = same.map(|slot| (slot, self.keys[slot])) {
            let plus = known.wrapping_add(plus).wrapping_sub(logged);
            return Place::Slot { slot: slot as u16, plus };
        }
        let place = self.add(LoggedWord { root, instruction: number, when: When::Before }, Some((key, known)));
        match place {
            Place::Slot { slot, .. } => Place::Slot { slot, plus },
            fixed => fixed,
        }
    }

    fn add(&mut self, slot: LoggedWord, key: Option<(Key, u64)>) -> Place {
        self.slots.push(slot);
        self.keys.push(key);
        Place::Slot { slot: self.slots.len() as u16 - 1, plus: 0 }
    }
}
