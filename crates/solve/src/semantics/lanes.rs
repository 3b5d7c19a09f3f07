//! Vector operations that do the same to every lane.

use iced_x86::{EncodingKind, OpKind};

use super::table::{Lane, LaneCompare, LaneUnary, Shift};
use crate::expr::{Expr, Op};
use crate::frame::{Concrete, Done, InstructionFrame};

impl InstructionFrame<'_> {
    /// The two sources of a vector operation: SSE has one of them in the destination.
    pub(super) fn two_sources(&mut self, lane: usize) -> Done<(Vec<Expr>, Vec<Expr>)> {
        let three = matches!(self.instruction.code().encoding(), EncodingKind::VEX | EncodingKind::EVEX);
        let (first, second) = if three { (1, 2) } else { (0, 1) };
        let a = self.made(first)?;
        let b = self.source(second, lane, a.len())?;
        Ok((a, b))
    }

    /// A source that may be one element for all lanes.
    pub(super) fn source(&mut self, op: u32, lane: usize, len: usize) -> Done<Vec<Expr>> {
        let mut bytes = self.made(op)?;
        if self.instruction.is_broadcast() && self.instruction.op_kind(op) == OpKind::Memory {
            // The element that is repeated may be wider than the lanes of the operation.
            let element = self.memory.len();
            if element == 0 || element < lane && !lane.is_multiple_of(element) {
                return Err(Concrete::Operands);
            }
            bytes.truncate(element);
            bytes = bytes.iter().copied().cycle().take(len).collect();
        }
        if bytes.len() < len { Err(Concrete::Operands) } else { Ok(bytes) }
    }

    /// Writes a vector under the instruction's mask.
    pub(super) fn set_masked(&mut self, mut bytes: Vec<Expr>, lane: usize) -> Done {
        if self.instruction.has_op_mask() {
            let mask = self.register_bytes(self.instruction.op_mask())?;
            let merging = self.instruction.merging_masking();
            let before = if merging { self.made(0)? } else { Vec::new() };
            let zero = self.arena.constant(8, 0);
            for (at, byte) in bytes.iter_mut().enumerate() {
                let number = at / lane;
                let bit = self.arena.extract(mask[number / 8], (number % 8) as u8, 1);
                let other = before.get(at).copied().unwrap_or(zero);
                *byte = self.arena.ite(bit, *byte, other);
            }
        }
        self.set_made(0, &bytes)
    }

    /// Bit per lane, as the bytes of a mask register.
    pub(super) fn set_mask_bits(&mut self, bits: Vec<Expr>) -> Done {
        let mut bits = bits;
        if self.instruction.has_op_mask() {
            let mask = self.register_bytes(self.instruction.op_mask())?;
            for (number, bit) in bits.iter_mut().enumerate() {
                let allowed = self.arena.extract(mask[number / 8], (number % 8) as u8, 1);
                *bit = self.arena.and(*bit, allowed);
            }
        }
        let no = self.arena.truth(false);
        let mut bytes = Vec::new();
        for chunk in bits.chunks(8) {
            let mut byte = chunk[0];
            for at in 1..8 {
                let bit = chunk.get(at).copied().unwrap_or(no);
                byte = self.arena.concat(bit, byte);
            }
            bytes.push(byte);
        }
        let zero = self.arena.constant(8, 0);
        bytes.resize(8, zero);
        self.set_made(0, &bytes)
    }
}

/// Applies `what` to each lane.
pub(super) fn each(
    f: &mut InstructionFrame<'_>,
    a: &[Expr],
    b: &[Expr],
    lane: usize,
    mut what: impl FnMut(&mut InstructionFrame<'_>, Expr, Expr) -> Expr,
) -> Vec<Expr> {
    let mut result = Vec::with_capacity(a.len());
    for (x, y) in a.chunks(lane).zip(b.chunks(lane)) {
        let (x, y) = (f.join(x), f.join(y));
        let value = what(f, x, y);
        result.extend(f.split(value));
    }
    result
}

pub fn binary(f: &mut InstructionFrame<'_>, what: Lane, lane: u8) -> Done {
    let lane = usize::from(lane);
    // The mask and broadcasts go by elements of the name, bitwise operations work on any.
    let (a, b) = f.two_sources(lane)?;
    let result = each(f, &a, &b, lane, |f, x, y| one(f, what, x, y));
    f.set_masked(result, lane)
}

fn one(f: &mut InstructionFrame<'_>, what: Lane, x: Expr, y: Expr) -> Expr {
    let a = &mut *f.arena;
    let width = a.width(x);
    match what {
        Lane::Add => a.add(x, y),
        Lane::Sub => a.sub(x, y),
        Lane::And => a.and(x, y),
        Lane::Or => a.or(x, y),
        Lane::Xor => a.xor(x, y),
        Lane::AndNot => {
            let inverse = a.not(x);
            a.and(inverse, y)
        }
        Lane::Mul => a.mul(x, y),
        Lane::MulHighUnsigned => a.umul_high(x, y),
        Lane::MulHighSigned => a.smul_high(x, y),
        Lane::MulLowHalves => {
            let half = width / 2;
            let (x, y) = (a.extract(x, 0, half), a.extract(y, 0, half));
            let (x, y) = (a.zext(x, width), a.zext(y, width));
            a.mul(x, y)
        }
        Lane::MinUnsigned | Lane::MaxUnsigned | Lane::MinSigned | Lane::MaxSigned => {
            let less = match what {
                Lane::MinUnsigned | Lane::MaxUnsigned => a.ult(x, y),
                _ => a.slt(x, y),
            };
            match what {
                Lane::MinUnsigned | Lane::MinSigned => a.ite(less, x, y),
                _ => a.ite(less, y, x),
            }
        }
        Lane::AddSaturatedUnsigned => {
            let sum = a.add(x, y);
            let over = a.ult(sum, x);
            let most = a.constant(width, u64::MAX);
            a.ite(over, most, sum)
        }
        Lane::SubSaturatedUnsigned => {
            let less = a.ult(x, y);
            let difference = a.sub(x, y);
            let zero = a.constant(width, 0);
            a.ite(less, zero, difference)
        }
        Lane::AverageUnsigned => {
            let (x, y) = (a.zext(x, width + 1), a.zext(y, width + 1));
            let sum = a.add(x, y);
            let one = a.constant(width + 1, 1);
            let sum = a.add(sum, one);
            a.extract(sum, 1, width)
        }
    }
}

pub fn unary(f: &mut InstructionFrame<'_>, what: LaneUnary, lane: u8) -> Done {
    let lane = usize::from(lane);
    let len = f.instruction.op0_register().size();
    let source = f.source(1, lane, len)?;
    let result = each(f, &source, &source, lane, |f, x, _| match what {
        LaneUnary::Abs => {
            let width = f.arena.width(x);
            let sign = f.arena.extract(x, width - 1, 1);
            let negative = f.arena.neg(x);
            f.arena.ite(sign, negative, x)
        }
        LaneUnary::LeadingZeros => f.arena.count(Op::Clz, x),
        LaneUnary::Popcnt => f.arena.count(Op::Popcnt, x),
    });
    f.set_masked(result, lane)
}

/// By an immediate, or by the lower half of a vector.
pub fn shift(f: &mut InstructionFrame<'_>, what: Shift, lane: u8) -> Done {
    let lane = usize::from(lane);
    let three = matches!(f.instruction.code().encoding(), EncodingKind::VEX | EncodingKind::EVEX);
    let (from, by) = if three { (1, 2) } else { (0, 1) };
    let len = f.instruction.op0_register().size();
    let source = f.source(from, lane, len)?;
    let width = (lane * 8) as u8;
    let by = match f.instruction.op_kind(by) {
        OpKind::Immediate8 => f.arena.constant(64, f.instruction.immediate8().into()),
        _ => {
            let bytes = f.made(by)?;
            f.join(&bytes[..8])
        }
    };
    // Too much is as much as there is.
    let size = f.arena.constant(64, width.into());
    let inside = f.arena.ult(by, size);
    let cut = f.arena.ite(inside, by, size);
    let by = f.arena.extract(cut, 0, width);
    let result = each(f, &source, &source, lane, |f, x, _| match what {
        Shift::Left => f.arena.shl(x, by),
        Shift::Right => f.arena.lshr(x, by),
        _ => f.arena.ashr(x, by),
    });
    f.set_masked(result, lane)
}

/// Compares lanes; the result is all ones or zeros, or bits of a mask.
pub fn compare(f: &mut InstructionFrame<'_>, what: LaneCompare, lane: u8) -> Done {
    let lane = usize::from(lane);
    let (a, b) = f.two_sources(lane)?;
    let mut bits = Vec::new();
    for (x, y) in a.chunks(lane).zip(b.chunks(lane)) {
        let (x, y) = (f.join(x), f.join(y));
        bits.push(match what {
            LaneCompare::Equal => f.arena.eq(x, y),
            LaneCompare::GreaterSigned => f.arena.slt(y, x),
        });
    }
    if f.instruction.op0_register().is_k() {
        return f.set_mask_bits(bits);
    }
    let mut result = Vec::with_capacity(a.len());
    for bit in bits {
        let byte = f.arena.sext(bit, 8);
        result.extend(std::iter::repeat_n(byte, lane));
    }
    f.set_made(0, &result)
}

/// `vpternlog`: any function of three bits, from a table of eight.
pub fn ternary(f: &mut InstructionFrame<'_>, lane: u8) -> Done {
    let lane = usize::from(lane);
    let table = f.instruction.immediate8();
    let (a, b) = (f.made(0)?, f.made(1)?);
    let c = f.source(2, lane, a.len())?;
    let mut result = Vec::with_capacity(a.len());
    for at in 0..a.len() {
        let mut sum = f.arena.constant(8, 0);
        for row in (0..8u8).filter(|row| table >> row & 1 == 1) {
            let mut term = f.arena.constant(8, 0xff);
            for (bit, byte) in [(4, a[at]), (2, b[at]), (1, c[at])] {
                let byte = if row & bit != 0 { byte } else { f.arena.not(byte) };
                term = f.arena.and(term, byte);
            }
            sum = f.arena.or(sum, term);
        }
        result.push(sum);
    }
    f.set_masked(result, lane)
}
