//! One table entry: everything that the opcode byte alone decides, in 16 bits, and how tables are written.

use super::{Class, FlagUse};

/// What follows ModRM and displacement.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Imm {
    None,
    Imm8,
    Imm16,
    /// 4 bytes, 2 with an effective 66 prefix.
    Imm32,
    /// As `Imm32`, but 8 bytes with REX.W (`mov r64, imm64`).
    Imm64,
    /// An address: 8 bytes, 4 with a 67 prefix.
    Moffs,
    /// `enter`: imm16 and imm8.
    Imm24,
    Rel8,
    Rel32,
}

/// Next step after the table look-up; classes that need no look at ModRM stand for themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Done(Class),
    /// `groups::resolve` decides, from ModRM and prefixes.
    Group,
    Prefix,
    Rex,
    Escape0f,
    Vex2,
    Vex3,
    Evex,
}

/// Bits 0-3 immediate, 4 ModRM, 5-6 flag use, 7 lockable, 8-15 step.
#[derive(Clone, Copy)]
pub(super) struct Op(u16);

const MODRM: u16 = 1 << 4;
const LOCKABLE: u16 = 1 << 7;
const GROUP: u8 = 0x80;

impl Op {
    const fn new(step: u8) -> Op {
        Op((step as u16) << 8)
    }
    pub(super) const fn class(class: Class) -> Op {
        Op::new(class as u8)
    }
    pub(super) const fn plain() -> Op {
        Op::class(Class::Plain)
    }
    pub(super) const fn unknown() -> Op {
        Op::class(Class::Unknown)
    }
    pub(super) const fn group() -> Op {
        Op::new(GROUP)
    }
    pub(super) const fn prefix() -> Op {
        Op::new(GROUP + 1)
    }
    pub(super) const fn rex() -> Op {
        Op::new(GROUP + 2)
    }
    pub(super) const fn escape_0f() -> Op {
        Op::new(GROUP + 3)
    }
    pub(super) const fn vex2() -> Op {
        Op::new(GROUP + 4)
    }
    pub(super) const fn vex3() -> Op {
        Op::new(GROUP + 5)
    }
    pub(super) const fn evex() -> Op {
        Op::new(GROUP + 6)
    }
    /// With a ModRM byte.
    pub(super) const fn m(self) -> Op {
        Op(self.0 | MODRM)
    }
    pub(super) const fn imm(self, imm: Imm) -> Op {
        Op(self.0 | imm as u16)
    }
    pub(super) const fn kills(self) -> Op {
        Op(self.0 | (FlagUse::Kills as u16) << 5)
    }
    pub(super) const fn mixed(self) -> Op {
        Op(self.0 | (FlagUse::Mixed as u16) << 5)
    }
    pub(super) const fn reads(self) -> Op {
        Op(self.0 | (FlagUse::Reads as u16) << 5)
    }
    /// `lock` is legal if the destination is memory (SDM vol. 2, LOCK).
    pub(super) const fn lockable(self) -> Op {
        Op(self.0 | LOCKABLE)
    }

    #[inline]
    pub(super) fn has_modrm(self) -> bool {
        self.0 & MODRM != 0
    }
    #[inline]
    pub(super) fn is_lockable(self) -> bool {
        self.0 & LOCKABLE != 0
    }
    #[inline]
    pub(super) fn imm_kind(self) -> Imm {
        const KINDS: [Imm; 16] = {
            use Imm::*;
            [None, Imm8, Imm16, Imm32, Imm64, Moffs, Imm24, Rel8, Rel32, None, None, None, None, None, None, None]
        };
        KINDS[(self.0 & 15) as usize]
    }
    #[inline]
    pub(super) fn flag_use(self) -> FlagUse {
        const USES: [FlagUse; 4] = [FlagUse::Keeps, FlagUse::Kills, FlagUse::Mixed, FlagUse::Reads];
        USES[(self.0 >> 5 & 3) as usize]
    }
    /// True for everything that is neither a prefix nor an escape.
    #[inline]
    pub(super) fn is_opcode(self) -> bool {
        self.0 >> 8 <= GROUP as u16
    }
    #[inline]
    pub(super) fn step(self) -> Step {
        let step = (self.0 >> 8) as u8;
        match step.wrapping_sub(GROUP) {
            0 => Step::Group,
            1 => Step::Prefix,
            2 => Step::Rex,
            3 => Step::Escape0f,
            4 => Step::Vex2,
            5 => Step::Vex3,
            6 => Step::Evex,
            _ => Step::Done(CLASSES[step as usize & 31]),
        }
    }
}

/// Classes by number, so that a number becomes a class without `unsafe`.
#[rustfmt::skip]
const CLASSES: [Class; 32] = {
    use Class::*;
    [
        Plain, JccRel, JmpRel, CallRel, Ret, RetImm, JmpInd, CallInd, LoopLike, Syscall, Int3, IntN, Ud, Hlt,
        Unsupported, Clflush, Clflushopt, Clwb, Cldemote, Sfence, Mfence, Lfence, Locked, Rdtsc, Rdtscp, Rdrand,
        Rdseed, Cpuid, GsAccess, Xbegin, Unknown, Unknown,
    ]
};
const _: () = {
    let mut i = 0;
    while i < 31 {
        assert!(CLASSES[i] as usize == i);
        i += 1;
    }
};

/// A row of an opcode map: opcodes `first..=last` are `op`.
pub(super) type Row = (u8, u8, Op);

/// A map from its rows; later rows overwrite earlier ones, opcodes in no row are `rest`.
pub(super) const fn table(rest: Op, rows: &[Row]) -> [Op; 256] {
    let mut table = [rest; 256];
    let mut r = 0;
    while r < rows.len() {
        let (first, last, op) = rows[r];
        assert!(first <= last);
        let mut i = first as usize;
        while i <= last as usize {
            table[i] = op;
            i += 1;
        }
        r += 1;
    }
    table
}
