//! The walk over one instruction: prefixes, escape, opcode, ModRM, displacement, immediate.

use super::groups::GROUPS;
use super::legal::{self, Legal};
use super::op::{IMM_BYTES, Imm, Op, ScanStep, imm_variant};
use super::special::{self, Seen};
use super::tables;
use super::{Class, FlagUse, Map, Scan};

/// SDM vol. 2, 2.3.11: a longer instruction faults.
const MAX_LEN: usize = 15;
const LOCK: u8 = 0xf0;
const GS: u8 = 0x65;

/// Scans the instruction at the start of `bytes`. `None`: it goes on beyond their end.
pub fn scan(bytes: &[u8]) -> Option<Scan> {
    let mut short = [0; 16];
    let bytes_left = bytes.len();
    let window = match bytes.first_chunk::<16>() {
        Some(window) => window,
        None => {
            // Zeros stand in for what is missing; an answer that depends on them does not count.
            short[..bytes_left].copy_from_slice(bytes);
            &short
        }
    };
    walk(&Window { bytes: window, left: bytes_left })
}

/// What there is to scan. It is read with `at`, which wraps instead of checking bounds: whatever it returns beyond
/// byte 15 belongs to an instruction that is too long, and those are refused at the end.
struct Window<'a> {
    bytes: &'a [u8; 16],
    /// How many of them (or more) are real.
    left: usize,
}

impl Window<'_> {
    #[inline]
    fn at(&self, i: usize) -> u8 {
        self.bytes[i & 15]
    }

    /// No such instruction, as the first `looked_at` bytes tell.
    #[cold]
    fn unknown(&self, looked_at: usize) -> Option<Scan> {
        (looked_at <= self.left).then_some(UNKNOWN)
    }
}

/// Prefixes that were met.
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
fn walk(window: &Window<'_>) -> Option<Scan> {
    // Nearly all instructions have at most a REX prefix: found without a jump, which would be hard to predict.
    let rex = if window.at(0) & 0xf0 == 0x40 { window.at(0) } else { 0 };
    let i = (rex != 0) as usize;
    let prefixes = Prefixes { rex, ..Prefixes::default() };
    let op = tables::ONE_BYTE[window.at(i) as usize];
    if op.is_opcode() {
        return operands(window, i, prefixes, Map::OneByte, 0, op);
    }
    prefixed(window, i, prefixes, op)
}

/// A prefix or an escape at `i`. Apart, so that the common case above stays small.
#[inline(never)]
fn prefixed(window: &Window<'_>, mut i: usize, mut prefixes: Prefixes, mut op: Op) -> Option<Scan> {
    loop {
        match op.step() {
            // Only a REX right before the opcode counts.
            ScanStep::Rex => prefixes.rex = window.at(i),
            ScanStep::Prefix => prefixes.add(window.at(i)),
            _ => break,
        }
        i += 1;
        if i == MAX_LEN {
            return window.unknown(i);
        }
        op = tables::ONE_BYTE[window.at(i) as usize];
    }
    let (mut map, mut pp) = (Map::OneByte, 0);
    if !op.is_opcode() {
        (map, pp, i) = match escape(window, i, prefixes, op.step()) {
            Ok(escape) => escape,
            Err(looked_at) => return window.unknown(looked_at),
        };
        let opcode = window.at(i) as usize;
        let (ops, legal) = MAPS[map as usize];
        if legal[opcode] >> pp & 1 == 0 {
            return window.unknown(i + 1);
        }
        op = ops[opcode];
    }
    operands(window, i, prefixes, map, pp, op)
}

/// The tables of each [`Map`], in its order.
static MAPS: [(&[Op; 256], &Legal); 12] = [
    (&tables::ONE_BYTE, &[0; 256]),
    (&tables::M0F, &legal::M0F),
    (&tables::M0F38, &legal::M0F38),
    (&tables::M0F3A, &legal::M0F3A),
    (&tables::VEX1, &legal::VEX1),
    (&tables::VEX2, &legal::VEX2),
    (&tables::VEX3, &legal::VEX3),
    (&tables::EVEX1, &legal::EVEX1),
    (&tables::EVEX2, &legal::EVEX2),
    (&tables::EVEX3, &legal::EVEX3),
    (&tables::EVEX5, &legal::EVEX5),
    (&tables::EVEX6, &legal::EVEX6),
];

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

/// The escape byte at `i` (0F, VEX, EVEX): its map, mandatory prefix and the opcode's place. The error says how many
/// bytes were enough to see that there is no such map.
#[inline]
fn escape(window: &Window<'_>, i: usize, prefixes: Prefixes, step: ScanStep) -> Result<(Map, u8, usize), usize> {
    Ok(match step {
        ScanStep::Escape0f => match window.at(i + 1) {
            0x38 => (Map::M0f38, prefixes.pp(), i + 2),
            0x3a => (Map::M0f3a, prefixes.pp(), i + 2),
            _ => (Map::M0f, prefixes.pp(), i + 1),
        },
        // SDM vol. 2, 2.3.2-2.3.4: these prefixes and REX before VEX or EVEX fault.
        _ if prefixes.rex != 0 || prefixes.rep != 0 || prefixes.data16 || prefixes.lock => {
            return Err(i + 1);
        }
        ScanStep::Vex2 => (Map::Vex1, window.at(i + 1) & 3, i + 2),
        ScanStep::Vex3 => {
            let map = match window.at(i + 1) & 0x1f {
                1 => Map::Vex1,
                2 => Map::Vex2,
                3 => Map::Vex3,
                _ => return Err(i + 2),
            };
            (map, window.at(i + 2) & 3, i + 3)
        }
        _ => {
            // Bit 3 of the first and bit 2 of the second byte are fixed before APX, which gives them a meaning.
            let map = match window.at(i + 1) & 0xf {
                1 => Map::Evex1,
                2 => Map::Evex2,
                3 => Map::Evex3,
                5 => Map::Evex5,
                6 => Map::Evex6,
                _ => return Err(i + 2),
            };
            if window.at(i + 2) & 4 == 0 {
                return Err(i + 3);
            }
            (map, window.at(i + 2) & 3, i + 4)
        }
    })
}

/// What a ModRM byte brings along. Bits 0-2: bytes of SIB and displacement, bit 6: the SIB byte may ask for a
/// disp32, bit 7: rip-relative.
static MODRM: [u8; 256] = {
    let mut table = [0; 256];
    let mut modrm = 0;
    while modrm < 0xc0 {
        let (mode, rm) = (modrm >> 6, modrm & 7);
        let disp = [0, 1, 4][mode];
        table[modrm] = match (mode, rm) {
            (0, 4) => 1 | 1 << 6,
            (0, 5) => 4 | 1 << 7,
            (_, 4) => 1 + disp,
            _ => disp,
        };
        modrm += 1;
    }
    table
};

/// From the opcode byte at `i` to the end.
#[inline(always)]
fn operands(window: &Window<'_>, i: usize, prefixes: Prefixes, map: Map, pp: u8, op: Op) -> Option<Scan> {
    let opcode = window.at(i);
    let (has_modrm, modrm) = (op.has_modrm(), window.at(i + 1));
    // Written without jumps, as above: what follows a ModRM byte is no more predictable than its value.
    let brings = MODRM[modrm as usize] & (has_modrm as u8).wrapping_neg();
    let no_base = (brings >> 6 & 1) & (window.at(i + 2) & 7 == 5) as u8;
    let mut end = i + 1 + has_modrm as usize + (brings & 7) as usize + 4 * no_base as usize;
    let disp_at = if brings >> 7 != 0 { i + 2 } else { 0 };

    let member = GROUPS[op.group_number()][(modrm >> 3 & 7 | ((modrm >= 0xc0) as u8) << 3) as usize];
    let op = if op.is_in_group() { member } else { op };
    let (mut class, mut flags, mut lockable, mut imm) = (op.class_of(), op.flag_use(), op.is_lockable(), op.imm_kind());
    if op.is_special() {
        let member = special::resolve(Seen { map, opcode, modrm, pp, rep: prefixes.rep });
        (class, flags, lockable) = (member.class, member.flags, member.lockable);
        imm = member.imm as usize;
    }
    if class == Class::Unknown {
        return window.unknown(i + 1 + has_modrm as usize);
    }
    // Where 5 bits of the count are 0, the sixth counts with a 64-bit operand.
    if op.is_counted() && window.at(end) & 31 == 0 && (window.at(end) & 32 == 0 || !prefixes.rex_w() || opcode == 0xc0)
    {
        flags = FlagUse::Mixed;
    }

    let imm_start = end;
    end += IMM_BYTES[imm][imm_variant(prefixes.data16, prefixes.rex_w(), prefixes.addr32)] as usize;
    if end > MAX_LEN {
        return window.unknown(MAX_LEN);
    }
    let near_branch = (Class::JccRel as u8..=Class::LoopLike as u8).contains(&(class as u8)) || class == Class::Xbegin;
    if prefixes.data16 && near_branch && !prefixes.rex_w() {
        return window.unknown(end);
    }
    if prefixes.lock {
        if !lockable || !has_modrm || modrm >= 0xc0 {
            return window.unknown(end);
        }
        class = Class::Locked;
    }
    if prefixes.seg == GS && class == Class::Plain && special::uses_segment(map, pp, opcode, has_modrm.then_some(modrm))
    {
        class = Class::GsAccess;
    }
    let has_target = (near_branch || class == Class::IntN) && imm != Imm::None as usize;
    if end > window.left {
        return None;
    }
    Some(Scan {
        len: end as u8,
        class,
        disp_at: disp_at as u8,
        imm_at: if has_target { imm_start as u8 } else { 0 },
        flags,
        opcode_at: i as u8,
        lock: prefixes.lock,
        rep: prefixes.rep,
        seg: prefixes.seg,
        modrm: if has_modrm { modrm } else { 0 },
        modrm_at: if has_modrm { i as u8 + 1 } else { 0 },
        cond: if class == Class::JccRel { opcode & 15 } else { 0 },
        rex: prefixes.rex,
        addr32: prefixes.addr32,
        data16: prefixes.data16,
        map,
    })
}

/// Nothing is said about its length.
const UNKNOWN: Scan = Scan {
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
