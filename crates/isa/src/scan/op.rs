//! One table entry: everything that the opcode byte alone decides, in one word, and how tables are written.

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

/// Bytes of an immediate, by its kind and by [`imm_variant`].
pub(super) static IMM_BYTES: [[u8; 8]; 16] = {
    const IMM32: [u8; 8] = [4, 2, 4, 4, 4, 2, 4, 4];
    const IMM64: [u8; 8] = [4, 2, 8, 8, 4, 2, 8, 8];
    const MOFFS: [u8; 8] = [8, 8, 8, 8, 4, 4, 4, 4];
    let mut bytes = [[0; 8]; 16];
    bytes[Imm::Imm8 as usize] = [1; 8];
    bytes[Imm::Imm16 as usize] = [2; 8];
    bytes[Imm::Imm32 as usize] = IMM32;
    bytes[Imm::Imm64 as usize] = IMM64;
    bytes[Imm::Moffs as usize] = MOFFS;
    bytes[Imm::Imm24 as usize] = [3; 8];
    bytes[Imm::Rel8 as usize] = [1; 8];
    bytes[Imm::Rel32 as usize] = [4; 8];
    bytes
};

/// Bit 0: 66 prefix, bit 1: REX.W (which overrides it), bit 2: 67 prefix.
#[inline]
pub(super) fn imm_variant(data16: bool, rex_w: bool, addr32: bool) -> usize {
    data16 as usize | (rex_w as usize) << 1 | (addr32 as usize) << 2
}

/// Next step after the table look-up; classes that need no look at ModRM stand for themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanStep {
    Done(Class),
    /// `special::resolve` decides.
    Special,
    Prefix,
    Rex,
    Escape0f,
    Vex2,
    Vex3,
    Evex,
}

/// Opcodes whose `/digit` (ModRM.reg) selects the instruction by table alone; the number is a row of `groups`.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Group {
    Arithmetic8,
    Arithmetic32,
    Xchg,
    MovFromSeg,
    MovToSeg,
    Pop,
    ShiftImm,
    ShiftOne,
    ShiftCl,
    MovImm8,
    MovImm32,
    X87Da,
    X87Db,
    X87Df,
    Unary8,
    Unary32,
    IncDec,
    IncDecBranchPush,
    BitImm,
}

/// Bits 0-3 immediate, 4 ModRM, 5-6 flag use, 7 lockable, 8-15 class or step, 16 counted, 24-31 group.
#[derive(Clone, Copy)]
pub(super) struct Op(u32);

const MODRM: u32 = 1 << 4;
const LOCKABLE: u32 = 1 << 7;
const COUNTED: u32 = 1 << 16;
const IN_GROUP: u32 = 1 << 31;
const FIRST_STEP: u8 = 0x80;

impl Op {
    const fn new(step: u8) -> Op {
        Op((step as u32) << 8)
    }
    pub(super) const fn class(class: Class) -> Op {
        Op::new(class as u8)
    }
    pub(super) const fn plain() -> Op {
        Op::class(Class::Plain)
    }
    pub(super) const fn unknown() -> Op {
        Op::class(Class::Unknown).reads()
    }
    pub(super) const fn special() -> Op {
        Op::new(FIRST_STEP)
    }
    pub(super) const fn prefix() -> Op {
        Op::new(FIRST_STEP + 1)
    }
    pub(super) const fn rex() -> Op {
        Op::new(FIRST_STEP + 2)
    }
    pub(super) const fn escape_0f() -> Op {
        Op::new(FIRST_STEP + 3)
    }
    pub(super) const fn vex2() -> Op {
        Op::new(FIRST_STEP + 4)
    }
    pub(super) const fn vex3() -> Op {
        Op::new(FIRST_STEP + 5)
    }
    pub(super) const fn evex() -> Op {
        Op::new(FIRST_STEP + 6)
    }
    pub(super) const fn group(group: Group) -> Op {
        Op(Op::plain().m().0 | (group as u32) << 24 | IN_GROUP)
    }
    /// With a ModRM byte.
    pub(super) const fn m(self) -> Op {
        Op(self.0 | MODRM)
    }
    pub(super) const fn imm(self, imm: Imm) -> Op {
        Op(self.0 | imm as u32)
    }
    pub(super) const fn kills(self) -> Op {
        Op(self.0 | (FlagUse::Kills as u32) << 5)
    }
    pub(super) const fn mixed(self) -> Op {
        Op(self.0 | (FlagUse::Mixed as u32) << 5)
    }
    pub(super) const fn reads(self) -> Op {
        Op(self.0 | (FlagUse::Reads as u32) << 5)
    }
    /// `lock` is legal if the destination is memory (SDM vol. 2, LOCK).
    pub(super) const fn lockable(self) -> Op {
        Op(self.0 | LOCKABLE)
    }
    /// Writes no flags if its imm8 is a count of 0.
    pub(super) const fn counted(self) -> Op {
        Op(self.0 | COUNTED)
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
    pub(super) fn is_counted(self) -> bool {
        self.0 & COUNTED != 0
    }
    /// True if the group's table has the real entry.
    #[inline]
    pub(super) fn is_in_group(self) -> bool {
        self.0 & IN_GROUP != 0
    }
    #[inline]
    pub(super) fn group_number(self) -> usize {
        (self.0 >> 24 & 0x1f) as usize
    }
    #[inline]
    pub(super) fn imm_kind(self) -> usize {
        (self.0 & 15) as usize
    }
    #[inline]
    pub(super) fn flag_use(self) -> FlagUse {
        const USES: [FlagUse; 4] = [FlagUse::Keeps, FlagUse::Kills, FlagUse::Mixed, FlagUse::Reads];
        USES[(self.0 >> 5 & 3) as usize]
    }
    /// True for everything that is neither a prefix nor an escape.
    #[inline]
    pub(super) fn is_opcode(self) -> bool {
        self.0 >> 8 & 0xff <= FIRST_STEP as u32
    }
    #[inline]
    pub(super) fn is_special(self) -> bool {
        self.0 >> 8 & 0xff == FIRST_STEP as u32
    }
    /// The class of an entry that is not special.
    #[inline]
    pub(super) fn class_of(self) -> Class {
        CLASSES[(self.0 >> 8 & 31) as usize]
    }
    #[inline]
    pub(super) fn step(self) -> ScanStep {
        match ((self.0 >> 8) as u8).wrapping_sub(FIRST_STEP) {
            0 => ScanStep::Special,
            1 => ScanStep::Prefix,
            2 => ScanStep::Rex,
            3 => ScanStep::Escape0f,
            4 => ScanStep::Vex2,
            5 => ScanStep::Vex3,
            6 => ScanStep::Evex,
            _ => ScanStep::Done(self.class_of()),
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
