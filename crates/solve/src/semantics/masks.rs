//! Opmask registers, and comparisons into them.

use super::table::MaskOp;
use crate::expr::Expr;
use crate::flags::{self, Flag};
use crate::frame::{Concrete, Done, InstructionFrame};

pub fn test_to_mask(f: &mut InstructionFrame<'_>, set: bool, lane: u8) -> Done {
    let lane = usize::from(lane);
    let a = f.made(1)?;
    let b = f.source(2, lane, a.len())?;
    let mut bits = Vec::new();
    for (x, y) in a.chunks(lane).zip(b.chunks(lane)) {
        let (x, y) = (f.join(x), f.join(y));
        let both = f.arena.and(x, y);
        let none = f.is_zero(both);
        bits.push(if set { f.arena.not(none) } else { none });
    }
    f.set_mask_bits(bits)
}

/// `vpcmp` with a predicate (SDM, VPCMPB).
pub fn compare_to_mask(f: &mut InstructionFrame<'_>, signed: bool, lane: u8) -> Done {
    let lane = usize::from(lane);
    let predicate = f.instruction.immediate8() & 7;
    let a = f.made(1)?;
    let b = f.source(2, lane, a.len())?;
    let mut bits = Vec::new();
    for (x, y) in a.chunks(lane).zip(b.chunks(lane)) {
        let (x, y) = (f.join(x), f.join(y));
        let less = |f: &mut InstructionFrame<'_>, x: Expr, y: Expr| {
            if signed { f.arena.slt(x, y) } else { f.arena.ult(x, y) }
        };
        let bit = match predicate & 3 {
            0 => f.arena.eq(x, y),
            1 => less(f, x, y),
            2 => {
                let greater = less(f, y, x);
                f.arena.not(greater)
            }
            _ => f.arena.truth(false),
        };
        bits.push(if predicate & 4 != 0 { f.arena.not(bit) } else { bit });
    }
    f.set_mask_bits(bits)
}

fn mask(f: &mut InstructionFrame<'_>, op: u32, bits: u8) -> Done<Expr> {
    let bytes = f.made(op)?;
    let value = f.join(&bytes[..usize::from(bits) / 8]);
    Ok(value)
}

fn set_mask(f: &mut InstructionFrame<'_>, value: Expr) -> Done {
    let wide = f.arena.zext(value, 64);
    let bytes = f.split(wide);
    f.set_made(0, &bytes)
}

pub fn binary(f: &mut InstructionFrame<'_>, what: MaskOp, bits: u8) -> Done {
    let (a, b) = (mask(f, 1, bits)?, mask(f, 2, bits)?);
    let result = match what {
        MaskOp::And => f.arena.and(a, b),
        MaskOp::Or => f.arena.or(a, b),
        MaskOp::Xor => f.arena.xor(a, b),
        MaskOp::Xnor => {
            let differ = f.arena.xor(a, b);
            f.arena.not(differ)
        }
        MaskOp::AndNot => {
            let inverse = f.arena.not(a);
            f.arena.and(inverse, b)
        }
        MaskOp::Add => f.arena.add(a, b),
    };
    set_mask(f, result)
}

pub fn not(f: &mut InstructionFrame<'_>, bits: u8) -> Done {
    let a = mask(f, 1, bits)?;
    let result = f.arena.not(a);
    set_mask(f, result)
}

pub fn shift(f: &mut InstructionFrame<'_>, left: bool, bits: u8) -> Done {
    let a = mask(f, 1, bits)?;
    let by = f.arena.constant(bits, u64::from(f.instruction.immediate8()).min(bits.into()));
    if f.instruction.immediate8() >= bits {
        let zero = f.zero(bits);
        return set_mask(f, zero);
    }
    let result = if left { f.arena.shl(a, by) } else { f.arena.lshr(a, by) };
    set_mask(f, result)
}

pub fn unpack(f: &mut InstructionFrame<'_>, bits: u8) -> Done {
    let (high, low) = (mask(f, 1, bits)?, mask(f, 2, bits)?);
    let result = f.arena.concat(high, low);
    set_mask(f, result)
}

/// `kortest` and `ktest`.
pub fn test(f: &mut InstructionFrame<'_>, with_or: bool, bits: u8) -> Done {
    if f.instruction.op_count() != 2 {
        return Err(Concrete::Operands);
    }
    let (a, b) = (mask(f, 0, bits)?, mask(f, 1, bits)?);
    let no = f.arena.truth(false);
    for flag in flags::ALL {
        f.set_flag(flag, Some(no));
    }
    let (zero, carry) = if with_or {
        let both = f.arena.or(a, b);
        let ones = f.arena.constant(bits, u64::MAX);
        (f.is_zero(both), f.arena.eq(both, ones))
    } else {
        let both = f.arena.and(a, b);
        let inverse = f.arena.not(a);
        let rest = f.arena.and(inverse, b);
        (f.is_zero(both), f.is_zero(rest))
    };
    f.set_flag(Flag::Zero, Some(zero));
    f.set_flag(Flag::Carry, Some(carry));
    Ok(())
}
