//! Where registers and flags are kept, and how a part of a register relates to the whole.
//!
//! Every register has a *whole*, and two parts: its lowest byte and the byte above it (`al`, `ah`).
//! A write of 32 or 64 bits replaces all three (the upper half becomes zero; SDM vol. 1 §3.4.1.1). A write of a part replaces the part and
//! is added to the whole, so a whole may carry too much after part of it was overwritten, until it is written again.
//! A vector register is one place, whatever its width: bytes in it are not told apart, and a legacy SSE instruction is taken
//! to replace what it writes. All x87 and MMX registers are one place that is only ever added to.
//! Flags are two places: carry, and the others. Segment bases carry nothing.

use iced_x86::{Register, RflagsBits};

use crate::labels::Value;

/// A register, or something that is kept like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisterNo(u8);

impl RegisterNo {
    /// Carries nothing, ever: for operands that an instruction does not have.
    pub const NONE: RegisterNo = RegisterNo(0);
    /// Takes results that nobody reads.
    pub const NOWHERE: RegisterNo = RegisterNo(1);
    /// Between the micro-operations of one instruction.
    pub const PASSED: RegisterNo = RegisterNo(2);
    pub const CARRY: RegisterNo = RegisterNo(3);
    pub const OTHER_FLAGS: RegisterNo = RegisterNo(4);
    const GENERAL: u8 = 5;
    const VECTOR: u8 = Self::GENERAL + 16;
    const MASK: u8 = Self::VECTOR + 32;
    const X87: u8 = Self::MASK + 8;
    const COUNT: usize = Self::X87 as usize + 1;

    /// The register that this is (a part of); none for those that carry nothing.
    pub fn of(register: Register) -> Option<RegisterNo> {
        let full = register.full_register();
        let number = register.number() as u8;
        if full.is_gpr() {
            return Some(RegisterNo(Self::GENERAL + full.number() as u8));
        }
        if full.is_vector_register() {
            return Some(RegisterNo(Self::VECTOR + number));
        }
        if register.is_k() {
            return Some(RegisterNo(Self::MASK + number));
        }
        (register.is_st() || register.is_mm()).then_some(RegisterNo(Self::X87))
    }

    pub fn whole(self) -> SourceRegister {
        SourceRegister(self.0 * 4)
    }

    pub fn is_shared(self) -> bool {
        self.0 == Self::X87
    }
}

/// How much of a register is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Whole,
    Low,
    High,
    /// Sixteen bits.
    Both,
}

impl Part {
    pub fn of(register: Register) -> Part {
        match register {
            Register::AH | Register::BH | Register::CH | Register::DH => Part::High,
            _ if register.is_gpr8() => Part::Low,
            _ if register.is_gpr16() => Part::Both,
            _ => Part::Whole,
        }
    }
}

/// Something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceRegister(u8);

impl SourceRegister {
    pub const NONE: SourceRegister = SourceRegister(0);

    /// What a read of this register reads; 16 bits are two places.
    pub fn of(register: Register) -> impl Iterator<Item = SourceRegister> {
        let number = RegisterNo::of(register);
        let parts: &[u8] = match Part::of(register) {
            Part::Whole => &[0],
            Part::Low => &[1],
            Part::High => &[2],
            Part::Both => &[1, 2],
        };
        number.into_iter().flat_map(move |number| parts.iter().map(move |part| SourceRegister(number.0 * 4 + part)))
    }

    /// What a read of these flags reads.
    pub fn of_flags(flags: u32) -> impl Iterator<Item = SourceRegister> {
        let carry = (flags & RflagsBits::CF != 0).then_some(RegisterNo::CARRY.whole());
        let others = (flags & OTHERS != 0).then_some(RegisterNo::OTHER_FLAGS.whole());
        carry.into_iter().chain(others)
    }
}

/// The flags beside carry that carry something. Not direction, interrupt and the like: those are not results.
pub const OTHERS: u32 = RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF | RflagsBits::PF | RflagsBits::AF;

/// What the registers of a thread carry.
#[derive(Clone, Debug)]
pub struct Registers {
    slots: [Value; RegisterNo::COUNT * 4],
}

impl Default for Registers {
    fn default() -> Self {
        Registers { slots: [Value::EMPTY; RegisterNo::COUNT * 4] }
    }
}

impl Registers {
    #[inline]
    pub fn get(&self, slot: SourceRegister) -> Value {
        self.slots[slot.0 as usize]
    }

    /// Writes all of a register.
    #[inline]
    pub fn set(&mut self, register: RegisterNo, value: Value) {
        let at = register.0 as usize * 4;
        self.slots[at..at + 3].fill(value);
    }

    /// Writes a part of a register; `whole` is what the whole carries then.
    pub fn set_part(&mut self, register: RegisterNo, part: Part, value: Value, whole: Value) {
        let at = register.0 as usize * 4;
        self.slots[at] = whole;
        match part {
            Part::Whole => self.slots[at..at + 3].fill(value),
            Part::Low => self.slots[at + 1] = value,
            Part::High => self.slots[at + 2] = value,
            Part::Both => self.slots[at + 1..at + 3].fill(value),
        }
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.slots.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_register_share_its_number() {
        for parts in [
            [Register::AL, Register::AX, Register::EAX, Register::RAX],
            [Register::DH, Register::DX, Register::EDX, Register::RDX],
            [Register::R9L, Register::R9W, Register::R9D, Register::R9],
            [Register::XMM7, Register::YMM7, Register::ZMM7, Register::ZMM7],
        ] {
            let numbers: Vec<_> = parts.iter().map(|&part| RegisterNo::of(part).unwrap()).collect();
            assert!(numbers.iter().all(|&number| number == numbers[0]), "{parts:?}");
        }
        assert_ne!(RegisterNo::of(Register::ZMM31), RegisterNo::of(Register::K0));
        assert_ne!(RegisterNo::of(Register::R15), RegisterNo::of(Register::XMM0));
        assert_eq!(RegisterNo::of(Register::FS), None);
        assert_eq!(RegisterNo::of(Register::MM3), RegisterNo::of(Register::ST0));
    }

    #[test]
    fn all_registers_fit() {
        let last = RegisterNo::of(Register::ST7).unwrap();
        assert_eq!(last.0 as usize + 1, RegisterNo::COUNT);
        const { assert!(RegisterNo::COUNT * 4 <= 256, "slots are bytes") };
    }
}
