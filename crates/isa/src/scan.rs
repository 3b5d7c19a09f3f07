//! A table-driven scanner: length, class and flag use of one instruction in 64-bit mode.
//!
//! The engine scans every instruction it translates, and translation is nearly all of its start-up; a full decode
//! costs about ten times as much. So this module answers only what translation needs of *every* instruction,
//! and a real decoder is asked about the few that turn out to touch PM.
//!
//! Sources: Intel SDM vol. 2 chapter 2 (formats) and appendix A (opcode maps); AMD APM vol. 3 appendix A.
//!
//! What is known: an opcode that exists (with its mandatory prefix) has a known length, even if its operands
//! make it fault (`lea` of a register, a reserved `VEX.vvvv`): the copy faults as the original does.
//! What is not: XOP, APX and opcodes that do not exist are [`Class::Unknown`]; so are near branches with a
//! 66 prefix, whose length depends on the vendor, and `lock` where it must fault.

mod groups;
mod legal;
mod op;
mod special;
mod tables;
mod walk;

pub use walk::scan;

/// What kind of instruction it is, as far as translation cares. Most are [`Class::Plain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// Can be copied; only a rip-relative operand needs care.
    Plain,
    /// Conditional jump; `cond` is the low nibble of its opcode.
    JccRel,
    JmpRel,
    CallRel,
    Ret,
    RetImm,
    /// `FF /4`. May have a memory operand with any segment.
    JmpInd,
    /// `FF /2`. May have a memory operand with any segment.
    CallInd,
    /// `loopne`, `loope`, `loop`, `jrcxz` (E0-E3); with `addr32` they use `ecx`.
    LoopLike,
    Syscall,
    Int3,
    IntN,
    /// `ud0`, `ud1`, `ud2`.
    Ud,
    Hlt,
    /// Control flow that leaves 64-bit user code or that no translator can follow: far branches, `iret`, `sysenter`, …
    Unsupported,
    Clflush,
    Clflushopt,
    Clwb,
    Cldemote,
    Sfence,
    Mfence,
    Lfence,
    /// A locked read-modify-write of memory: `lock`, `xchg` with memory, `cmpccxadd`.
    Locked,
    Rdtsc,
    Rdtscp,
    Rdrand,
    Rdseed,
    Cpuid,
    /// Uses the GS segment or its base in a way that is not one of the classes above (those have `seg` = 0x65).
    GsAccess,
    Xbegin,
    /// Not known. `len` is 0: nothing is said about where the next instruction begins.
    Unknown,
}

/// What an instruction does with the arithmetic flags CF, PF, AF, ZF, SF and OF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FlagUse {
    /// Neither reads nor writes one.
    Keeps,
    /// Writes all (or leaves them undefined) and reads none: they are dead before it.
    Kills,
    /// Reads none, and may write some.
    Mixed,
    /// Reads at least one, or is too rare to be worth knowing better.
    Reads,
}

/// The opcode map an instruction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Map {
    OneByte,
    /// Legacy `0F`, `0F 38`, `0F 3A`.
    M0f,
    M0f38,
    M0f3a,
    Vex1,
    Vex2,
    Vex3,
    Evex1,
    Evex2,
    Evex3,
    Evex5,
    Evex6,
}

/// One scanned instruction. Offsets count from its first byte; 0 means there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    pub len: u8,
    pub class: Class,
    /// Of the disp32 of a rip-relative operand (eip-relative with `addr32`).
    pub disp_at: u8,
    /// Of the rel8, rel32 or imm16 of a branch, `xbegin` or `ret`, or the number of `int`.
    pub imm_at: u8,
    pub flags: FlagUse,
    /// Of the opcode byte proper, after prefixes and escapes.
    pub opcode_at: u8,
    pub lock: bool,
    /// The last of the prefixes F2 and F3, else 0. Also where it is a mandatory prefix, not for VEX and EVEX.
    pub rep: u8,
    /// 0x64 (fs) or 0x65 (gs), else 0.
    pub seg: u8,
    pub modrm: u8,
    pub modrm_at: u8,
    /// Low nibble of the opcode of a [`Class::JccRel`].
    pub cond: u8,
    /// The REX prefix that counts, else 0.
    pub rex: u8,
    /// Has a 67 prefix.
    pub addr32: bool,
    /// Has a 66 prefix.
    pub data16: bool,
    pub map: Map,
}

impl Scan {
    /// Has a ModRM byte that names memory.
    pub const fn has_modrm_memory(&self) -> bool {
        self.modrm_at != 0 && self.modrm < 0xc0
    }
}
