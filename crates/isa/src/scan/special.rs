//! Opcodes whose meaning depends on a prefix or on all of ModRM (SDM vol. 2, table A-6 "Opcode extensions").

use super::op::Imm;
use super::{Class, FlagUse, Map};

/// What is known of an instruction when its operands have been walked.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub map: Map,
    pub opcode: u8,
    pub modrm: u8,
    /// 0: none, 1: 66, 2: F3, 3: F2 (as in VEX.pp).
    pub pp: u8,
    pub rep: u8,
}

/// What the group member is.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub class: Class,
    pub flags: FlagUse,
    pub lockable: bool,
    pub imm: Imm,
}

const fn is(class: Class, flags: FlagUse) -> Member {
    Member { class, flags, lockable: false, imm: Imm::None }
}
const fn plain(flags: FlagUse) -> Member {
    is(Class::Plain, flags)
}
const fn keeps(class: Class) -> Member {
    is(class, FlagUse::Keeps)
}
const UNKNOWN: Member = is(Class::Unknown, FlagUse::Reads);

impl Member {
    const fn lockable(self) -> Member {
        Member { lockable: true, ..self }
    }
    const fn imm(self, imm: Imm) -> Member {
        Member { imm, ..self }
    }
}

pub(super) fn resolve(seen: Seen) -> Member {
    match seen.map {
        Map::OneByte => one_byte(seen),
        Map::M0f => m0f(seen),
        // Key Locker (F3) writes flags, AES does not; `enqcmd` (F2, F3) does, `movdir64b` does not.
        Map::M0f38 if seen.opcode >= 0xdc => plain(if seen.pp >= 2 { FlagUse::Reads } else { FlagUse::Keeps }),
        // `bzhi` and `bextr` have no prefix; the others of F5 and F7 keep the flags.
        Map::Vex2 => plain(if seen.pp == 0 { FlagUse::Kills } else { FlagUse::Keeps }),
        _ => UNKNOWN,
    }
}

fn one_byte(seen: Seen) -> Member {
    match (seen.opcode, seen.modrm) {
        // cmps, scas: a count may be 0.
        (0xa6 | 0xa7 | 0xae | 0xaf, _) => plain(if seen.rep == 0 { FlagUse::Kills } else { FlagUse::Mixed }),
        (0xc6, 0xf8) => plain(FlagUse::Keeps).imm(Imm::Imm8), // xabort
        (0xc7, 0xf8) => keeps(Class::Xbegin).imm(Imm::Rel32),
        _ => UNKNOWN,
    }
}

fn m0f(seen: Seen) -> Member {
    use FlagUse::{Keeps, Kills, Mixed, Reads};
    const NP: u8 = 0;
    const P66: u8 = 1;
    const PF3: u8 = 2;
    const PF2: u8 = 3;
    let memory = seen.modrm < 0xc0;
    let reg = seen.modrm >> 3 & 7;
    let pp = seen.pp;
    match (seen.opcode, reg) {
        (0x00, 0..=3) => plain(Keeps),
        (0x00, 4 | 5) => plain(Mixed),
        (0x00, 6) if pp == PF2 => plain(Keeps),
        (0x01, _) if memory => plain(if reg == 5 { Reads } else { Keeps }),
        (0x01, _) => match (seen.modrm, pp) {
            (0xf8, _) => keeps(Class::GsAccess),
            (0xf9, _) => keeps(Class::Rdtscp),
            // enclu leaves for an enclave, uiret for what was interrupted.
            (0xd7, _) | (0xec, PF3) => is(Class::Unsupported, Reads),
            // xgetbv, xsetbv, rdpkru, wrpkru, smsw.
            (0xd0 | 0xd1 | 0xee | 0xef | 0xe0..=0xe7, NP) => plain(Keeps),
            _ => plain(Reads),
        },
        (0x1c, 0) if memory && pp == NP => keeps(Class::Cldemote),
        (0x1c, _) => plain(Keeps),
        // vmread; extrq and insertq have two imm8.
        (0x78, _) if pp == NP => plain(Reads),
        (0x78, _) => plain(Keeps).imm(Imm::Imm16),
        (0xae, _) if memory => match (reg, pp) {
            (0..=6, NP) => plain(Keeps),
            (7, NP) => keeps(Class::Clflush),
            (6, P66) => keeps(Class::Clwb),
            (7, P66) => keeps(Class::Clflushopt),
            (4, PF3) => plain(Keeps),
            // clrssbsy.
            (6, PF3) => plain(Reads),
            _ => UNKNOWN,
        },
        (0xae, _) => match (reg, pp) {
            (5, NP) => keeps(Class::Lfence),
            (6, NP) => keeps(Class::Mfence),
            (7, NP) => keeps(Class::Sfence),
            // rdgsbase, wrgsbase; rdfsbase, wrfsbase, ptwrite, incssp, umonitor.
            (1 | 3, PF3) => keeps(Class::GsAccess),
            (0 | 2 | 4 | 5 | 6, PF3) => plain(Keeps),
            // tpause, umwait.
            (6, P66 | PF2) => plain(Reads),
            _ => UNKNOWN,
        },
        // cmpxchg8b, cmpxchg16b write ZF alone.
        (0xc7, 1) if memory => plain(Mixed).lockable(),
        (0xc7, 3..=5) if memory => plain(Keeps),
        (0xc7, 6 | 7) if memory => plain(Reads),
        // senduipi, rdpid.
        (0xc7, 6 | 7) if pp == PF3 => plain(Keeps),
        (0xc7, 6) => is(Class::Rdrand, Kills),
        (0xc7, 7) => is(Class::Rdseed, Kills),
        _ => UNKNOWN,
    }
}

/// Whether an instruction with a segment override really uses it (asked for GS only).
pub(super) fn uses_segment(map: Map, pp: u8, opcode: u8, modrm: Option<u8>) -> bool {
    let modrm = modrm.unwrap_or(0xff);
    match (map, opcode) {
        // lea; hints that access nothing.
        (Map::OneByte, 0x8d) | (Map::M0f, 0x0d | 0x18..=0x1f) => false,
        // outs, moffs, movs, cmps, lods, xlat: the address is not in ModRM.
        (Map::OneByte, 0x6e | 0x6f | 0xa0..=0xa7 | 0xac | 0xad | 0xd7) => true,
        // maskmovq, maskmovdqu.
        (Map::M0f | Map::Vex1, 0xf7) => true,
        // umonitor, not tpause or umwait.
        (Map::M0f, 0xae) => modrm < 0xc0 || modrm >> 3 & 7 == 6 && pp == 2,
        // monitor, monitorx, clzero; invlpg accesses nothing.
        (Map::M0f, 0x01) => matches!(modrm, 0xc8 | 0xfa | 0xfc) || modrm < 0xc0 && modrm >> 3 & 7 != 7,
        _ => modrm < 0xc0,
    }
}
