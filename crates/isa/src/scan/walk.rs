//! The walk over one instruction: prefixes, escape, opcode, ModRM, displacement, immediate.

use super::groups::{self, Seen};
use super::legal::{self, Legal};
use super::op::{Imm, Op, Step};
use super::tables;
use super::{Class, FlagUse, Map, Scan};

/// SDM vol. 2, 2.3.11: a longer instruction faults.
const MAX_LEN: usize = 15;
const LOCK: u8 = 0xf0;
const GS: u8 = 0x65;

/// Scans the instruction at the start of `bytes`. `None`: it goes on beyond their end.
pub fn scan(bytes: &[u8]) -> Option<Scan> {
    match bytes.first_chunk::<16>() {
        Some(window) => Some(walk(window).0),
        None => {
            // Zeros stand in for what is missing; an answer that looked at them does not count.
            let mut window = [0; 16];
            window[..bytes.len()].copy_from_slice(bytes);
            let (scan, looked_at) = walk(&window);
            (looked_at <= bytes.len()).then_some(scan)
        }
    }
}

/// Prefixes that were met. The window is read with `at`, which wraps instead of checking bounds: whatever it
/// returns beyond byte 15 belongs to an instruction that is too long, and those are refused at the end.
#[derive(Clone, Copy, Default)]
struct Prefixes {
    rex: u8,
    rep: u8,
    seg: u8,
    lock: bool,
    data16: bool,
    addr32: bool,
}

#[inline]
fn at(window: &[u8; 16], i: usize) -> u8 {
    window[i & 15]
}

/// The scan, and how many bytes it depends on.
#[inline]
fn walk(window: &[u8; 16]) -> (Scan, usize) {
    let mut i = 0;
    let mut prefixes = Prefixes::default();
    let mut opcode = at(window, 0);
    let mut op = tables::ONE_BYTE[opcode as usize];
    if !op.is_opcode() {
        loop {
            match op.step() {
                // Only a REX right before the opcode counts.
                Step::Rex => prefixes.rex = opcode,
                Step::Prefix => prefixes.add(opcode),
                Step::Done(_) | Step::Group => break,
                Step::Escape0f | Step::Vex2 | Step::Vex3 | Step::Evex => {
                    return escaped(window, i, prefixes, op.step());
                }
            }
            i += 1;
            if i == MAX_LEN {
                return unknown(i);
            }
            opcode = at(window, i);
            op = tables::ONE_BYTE[opcode as usize];
        }
    }
    operands(window, i, prefixes, Map::OneByte, 0, op)
}

impl Prefixes {
    #[inline]
    fn add(&mut self, prefix: u8) {
        self.rex = 0;
        match prefix {
            0x66 => self.data16 = true,
            0x67 => self.addr32 = true,
            0x64 | GS => self.seg = prefix,
            0xf2 | 0xf3 => self.rep = prefix,
            LOCK => self.lock = true,
            // CS, DS, ES, SS: no effect in 64-bit mode, not even on an earlier FS or GS.
            _ => {}
        }
    }

    /// The mandatory prefix, numbered as in VEX.pp; F2 and F3 take precedence over 66.
    #[inline]
    fn pp(&self) -> u8 {
        match self.rep {
            0xf3 => 2,
            0xf2 => 3,
            _ => self.data16 as u8,
        }
    }

    #[inline]
    fn rex_w(&self) -> bool {
        self.rex & 8 != 0
    }
}

/// Everything after an escape byte at `i`: the 0F maps, VEX and EVEX.
#[inline]
fn escaped(window: &[u8; 16], i: usize, prefixes: Prefixes, step: Step) -> (Scan, usize) {
    let (map, pp, i) = match step {
        Step::Escape0f => match at(window, i + 1) {
            0x38 => (Map::M0f38, prefixes.pp(), i + 2),
            0x3a => (Map::M0f3a, prefixes.pp(), i + 2),
            _ => (Map::M0f, prefixes.pp(), i + 1),
        },
        // SDM vol. 2, 2.3.2-2.3.4: these prefixes and REX before VEX or EVEX fault.
        _ if prefixes.rex != 0 || prefixes.rep != 0 || prefixes.data16 || prefixes.lock => return unknown(i + 1),
        Step::Vex2 => (Map::Vex1, at(window, i + 1) & 3, i + 2),
        Step::Vex3 => {
            let map = match at(window, i + 1) & 0x1f {
                1 => Map::Vex1,
                2 => Map::Vex2,
                3 => Map::Vex3,
                _ => return unknown(i + 2),
            };
            (map, at(window, i + 2) & 3, i + 3)
        }
        _ => {
            // Bit 3 of the first and bit 2 of the second byte are fixed before APX, which gives them a meaning.
            let map = match at(window, i + 1) & 0xf {
                1 => Map::Evex1,
                2 => Map::Evex2,
                3 => Map::Evex3,
                5 => Map::Evex5,
                6 => Map::Evex6,
                _ => return unknown(i + 2),
            };
            if at(window, i + 2) & 4 == 0 {
                return unknown(i + 3);
            }
            (map, at(window, i + 2) & 3, i + 4)
        }
    };
    let opcode = at(window, i) as usize;
    let (ops, legal): (&[Op; 256], &Legal) = match map {
        Map::OneByte => return unknown(i),
        Map::M0f => (&tables::M0F, &legal::M0F),
        Map::M0f38 => (&tables::M0F38, &legal::M0F38),
        Map::M0f3a => (&tables::M0F3A, &legal::M0F3A),
        Map::Vex1 => (&tables::VEX1, &legal::VEX1),
        Map::Vex2 => (&tables::VEX2, &legal::VEX2),
        Map::Vex3 => (&tables::VEX3, &legal::VEX3),
        Map::Evex1 => (&tables::EVEX1, &legal::EVEX1),
        Map::Evex2 => (&tables::EVEX2, &legal::EVEX2),
        Map::Evex3 => (&tables::EVEX3, &legal::EVEX3),
        Map::Evex5 => (&tables::EVEX5, &legal::EVEX5),
        Map::Evex6 => (&tables::EVEX6, &legal::EVEX6),
    };
    if legal[opcode] >> pp & 1 == 0 {
        return unknown(i + 1);
    }
    operands(window, i, prefixes, map, pp, ops[opcode])
}

/// From the opcode byte at `i` to the end.
#[inline]
fn operands(window: &[u8; 16], i: usize, prefixes: Prefixes, map: Map, pp: u8, op: Op) -> (Scan, usize) {
    let opcode = at(window, i);
    let mut end = i + 1;
    let (mut modrm, mut modrm_at, mut disp_at) = (0, 0, 0);
    if op.has_modrm() {
        modrm = at(window, end);
        modrm_at = end;
        end += 1;
        if modrm < 0xc0 {
            let (mode, rm) = (modrm >> 6, modrm & 7);
            if rm == 4 {
                // A SIB byte; without a base register there is a disp32.
                let no_base = mode == 0 && at(window, end) & 7 == 5;
                end += 1 + if no_base { 4 } else { 0 };
            } else if mode == 0 && rm == 5 {
                disp_at = end;
                end += 4;
            }
            end += [0, 1, 4, 0][mode as usize];
        }
    }

    let mut imm = op.imm_kind();
    let (mut class, flags, lockable) = match op.step() {
        Step::Done(class) => (class, op.flag_use(), op.is_lockable()),
        _ => {
            let (rep, rex_w, next) = (prefixes.rep, prefixes.rex_w(), at(window, end));
            let member = groups::resolve(Seen { map, opcode, modrm, pp, rep, rex_w, next });
            imm = member.imm.unwrap_or(imm);
            (member.class, member.flags, member.lockable)
        }
    };
    if class == Class::Unknown {
        return unknown(if op.has_modrm() { modrm_at + 1 } else { i + 1 });
    }

    let data16 = prefixes.data16 && !prefixes.rex_w();
    let imm_start = end;
    end += match imm {
        Imm::None => 0,
        Imm::Imm8 | Imm::Rel8 => 1,
        Imm::Imm16 => 2,
        Imm::Imm24 => 3,
        Imm::Rel32 => 4,
        Imm::Imm32 => 4 - 2 * data16 as usize,
        Imm::Imm64 if prefixes.rex_w() => 8,
        Imm::Imm64 => 4 - 2 * data16 as usize,
        Imm::Moffs => 8 - 4 * prefixes.addr32 as usize,
    };
    let near_branch = (Class::JccRel as u8..=Class::LoopLike as u8).contains(&(class as u8)) || class == Class::Xbegin;
    if near_branch && data16 {
        return unknown(end);
    }
    if end > MAX_LEN {
        return unknown(MAX_LEN);
    }
    if prefixes.lock {
        if !lockable || modrm_at == 0 || modrm >= 0xc0 {
            return unknown(end);
        }
        class = Class::Locked;
    }
    if prefixes.seg == GS && class == Class::Plain && groups::uses_segment(map, opcode, op.has_modrm().then_some(modrm))
    {
        class = Class::GsAccess;
    }
    let imm_at = if imm != Imm::None && (near_branch || class == Class::IntN) { imm_start } else { 0 };
    let scan = Scan {
        len: end as u8,
        class,
        disp_at: disp_at as u8,
        imm_at: imm_at as u8,
        flags,
        opcode_at: i as u8,
        lock: prefixes.lock,
        rep: prefixes.rep,
        seg: prefixes.seg,
        modrm,
        modrm_at: modrm_at as u8,
        cond: if class == Class::JccRel { opcode & 15 } else { 0 },
        rex: prefixes.rex,
        addr32: prefixes.addr32,
        data16: prefixes.data16,
        map,
    };
    (scan, end)
}

/// Nothing is said about length; only how many bytes were enough to know that.
#[cold]
fn unknown(looked_at: usize) -> (Scan, usize) {
    let scan = Scan {
        len: 0,
        class: Class::Unknown,
        disp_at: 0,
        imm_at: 0,
        flags: FlagUse::Reads,
        opcode_at: 0,
        lock: false,
        rep: 0,
        seg: 0,
        modrm: 0,
        modrm_at: 0,
        cond: 0,
        rex: 0,
        addr32: false,
        data16: false,
        map: Map::OneByte,
    };
    (scan, looked_at)
}
