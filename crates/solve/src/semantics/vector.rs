//! Vector instructions that are neither lane by lane nor a fixed shuffle.

use iced_x86::{EncodingKind, OpKind};

use crate::expr::Expr;
use crate::flags::{self, Flag};
use crate::frame::{Concrete, Done, InstructionFrame, WIDEST};

/// `pmovmskb`, `movmskps`, `movmskpd`: the sign of each lane.
pub fn move_mask(f: &mut InstructionFrame<'_>, lane: u8) -> Done {
    let bytes = f.made(1)?;
    let mut value: Option<Expr> = None;
    for chunk in bytes.chunks(lane.into()) {
        let Some(&top) = chunk.last() else { continue };
        let bit = f.arena.extract(top, 7, 1);
        value = Some(match value {
            None => bit,
            Some(value) => f.arena.concat(bit, value),
        });
    }
    let value = value.ok_or(Concrete::Operands)?;
    let width = f.width(0)?;
    let result = f.arena.zext(value, width);
    f.set(0, result)
}

/// `ptest`.
pub fn test(f: &mut InstructionFrame<'_>) -> Done {
    let (a, b) = (f.made(0)?, f.made(1)?);
    let (mut zero, mut carry) = (f.arena.truth(true), f.arena.truth(true));
    for (x, y) in a.chunks(8).zip(b.chunks(8)) {
        let (x, y) = (f.join(x), f.join(y));
        let both = f.arena.and(x, y);
        let inverse = f.arena.not(x);
        let rest = f.arena.and(inverse, y);
        let (none, no_rest) = (f.is_zero(both), f.is_zero(rest));
        zero = f.arena.and(zero, none);
        carry = f.arena.and(carry, no_rest);
    }
    let no = f.arena.truth(false);
    for flag in flags::ALL {
        f.set_flag(flag, Some(no));
    }
    f.set_flag(Flag::Zero, Some(zero));
    f.set_flag(Flag::Carry, Some(carry));
    Ok(())
}

/// `vpblendvb`: by the sign of each byte of the last operand.
pub fn blend_by_sign(f: &mut InstructionFrame<'_>) -> Done {
    let (a, b, by) = match f.instruction.code().encoding() {
        EncodingKind::VEX => (f.made(1)?, f.made(2)?, f.made(3)?),
        _ => {
            // xmm0 is implied, and not logged unless it is an operand.
            let by = f.register_bytes(iced_x86::Register::XMM0)?;
            (f.made(0)?, f.made(1)?, by)
        }
    };
    let mut result = Vec::with_capacity(a.len());
    for at in 0..a.len() {
        let bit = f.arena.extract(by[at], 7, 1);
        result.push(f.arena.ite(bit, b[at], a[at]));
    }
    f.set_made(0, &result)
}

/// `pshufb`: each byte of the second source says which byte of the first in its 16 comes there.
pub fn shuffle_bytes(f: &mut InstructionFrame<'_>) -> Done {
    let (a, by) = f.two_sources(1)?;
    let mut result = Vec::with_capacity(a.len());
    let zero = f.arena.constant(8, 0);
    for (at, &control) in by.iter().enumerate().take(a.len()) {
        let base = at / 16 * 16;
        let clear = f.arena.extract(control, 7, 1);
        let index = f.arena.extract(control, 0, 4);
        let mut value = a[base];
        for n in 1..16u8 {
            let number = f.arena.constant(4, n.into());
            let chosen = f.arena.eq(index, number);
            value = f.arena.ite(chosen, a[base + usize::from(n)], value);
        }
        result.push(f.arena.ite(clear, zero, value));
    }
    f.set_masked(result, 1)
}

/// `pmovzx`, `pmovsx`.
pub fn extend(f: &mut InstructionFrame<'_>, signed: bool, from: u8, to: u8) -> Done {
    let bytes = f.made(1)?;
    let len = f.instruction.op0_register().size();
    let mut result = Vec::with_capacity(len);
    for n in 0..len / usize::from(to) {
        let from = usize::from(from);
        let lane = bytes.get(n * from..(n + 1) * from).ok_or(Concrete::Operands)?.to_vec();
        let value = f.join(&lane);
        let wide = if signed { f.arena.sext(value, to * 8) } else { f.arena.zext(value, to * 8) };
        result.extend(f.split(wide));
    }
    f.set_masked(result, to.into())
}

/// `pinsr`.
pub fn insert(f: &mut InstructionFrame<'_>, lane: u8) -> Done {
    let three = matches!(f.instruction.code().encoding(), EncodingKind::VEX | EncodingKind::EVEX);
    let (from, value) = if three { (1, 2) } else { (0, 1) };
    let mut bytes = f.bytes(from)?;
    let piece = f.bytes(value)?;
    let lane = usize::from(lane);
    let at = usize::from(f.instruction.immediate8()) % (16 / lane) * lane;
    bytes[at..at + lane].copy_from_slice(&piece[..lane]);
    f.set_bytes(0, &bytes)
}

/// `pextr`.
pub fn extract(f: &mut InstructionFrame<'_>, lane: u8) -> Done {
    let bytes = f.bytes(1)?;
    let lane = usize::from(lane);
    let at = usize::from(f.instruction.immediate8()) % (16 / lane) * lane;
    let mut piece = bytes[at..at + lane].to_vec();
    if f.instruction.op0_kind() == OpKind::Register {
        piece.resize(f.instruction.op0_register().size(), None);
    }
    f.set_bytes(0, &piece)
}

pub fn zero_upper(f: &mut InstructionFrame<'_>, all: bool) {
    for (number, whole) in f.registers.vector.iter_mut().enumerate().take(16) {
        whole[if all { 0 } else { 16 }..WIDEST].fill(None);
        if whole.iter().all(Option::is_none) {
            f.registers.live &= !(1 << (16 + number));
        }
    }
}
