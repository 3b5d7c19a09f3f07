//! Shuffles that the instruction alone determines: each byte of the result comes from a known place.

use iced_x86::EncodingKind;

use super::table::Shuffle;
use crate::frame::{Byte, Concrete, Done, InstructionFrame};

/// Where a byte of the result comes from.
#[derive(Clone, Copy)]
enum Origin {
    First(usize),
    Second(usize),
    Zero,
}

pub fn shuffle(f: &mut InstructionFrame<'_>, what: Shuffle) -> Done {
    use Shuffle as S;
    if f.instruction.has_op_mask() || f.instruction.is_broadcast() {
        return Err(Concrete::Operands);
    }
    let i = f.instruction;
    let three = matches!(i.code().encoding(), EncodingKind::VEX | EncodingKind::EVEX);
    let len = match i.op0_kind() {
        iced_x86::OpKind::Register => i.op0_register().size(),
        _ => f.memory.len(),
    };
    let (first, second): (u32, u32) = match what {
        // One source, and perhaps an immediate.
        S::Doublewords | S::LowWords | S::HighWords | S::Quadwords | S::Broadcast(_) | S::ExtractHalf(_) => (1, 1),
        S::BytesLeft | S::BytesRight => {
            if three {
                (1, 1)
            } else {
                (0, 0)
            }
        }
        _ if three => (1, 2),
        _ => (0, 1),
    };
    let (a, b) = (f.bytes(first)?, f.bytes(second)?);
    let by_number = !matches!(what, S::Interleave { .. } | S::Broadcast(_));
    if by_number && i.op_kind(i.op_count() - 1) != iced_x86::OpKind::Immediate8 {
        return Err(Concrete::Operands);
    }
    let imm = if by_number { i.immediate8() } else { 0 };
    let imm = usize::from(imm);
    let mut result: Vec<Byte> = Vec::with_capacity(len);
    for at in 0..len {
        let from = place(what, at, len, imm)?;
        result.push(match from {
            Origin::First(n) => *a.get(n).ok_or(Concrete::Operands)?,
            Origin::Second(n) => *b.get(n).ok_or(Concrete::Operands)?,
            Origin::Zero => None,
        });
    }
    f.set_bytes(0, &result)
}

/// Where byte `at` of a result of `len` bytes comes from.
fn place(what: Shuffle, at: usize, len: usize, imm: usize) -> Done<Origin> {
    use self::Origin::{First, Second, Zero};
    use Shuffle as S;
    let (base, inside) = (at / 16 * 16, at % 16);
    Ok(match what {
        S::Doublewords => First(base + (imm >> (inside / 4 * 2) & 3) * 4 + inside % 4),
        S::LowWords if inside < 8 => First(base + (imm >> (inside / 2 * 2) & 3) * 2 + inside % 2),
        S::HighWords if inside >= 8 => First(base + 8 + (imm >> ((inside - 8) / 2 * 2) & 3) * 2 + inside % 2),
        S::LowWords | S::HighWords => First(at),
        S::Quadwords => {
            let quarter = at / 32 * 32;
            First(quarter + (imm >> (at % 32 / 8 * 2) & 3) * 8 + at % 8)
        }
        S::Interleave { lane, high } => {
            let lane = usize::from(lane);
            let source = base + if high { 8 } else { 0 } + inside / (2 * lane) * lane + inside % lane;
            if inside / lane % 2 == 0 { First(source) } else { Second(source) }
        }
        S::Align => {
            // The second source is the lower part.
            match inside + imm {
                n if n < 16 => Second(base + n),
                n if n < 32 => First(base + n - 16),
                _ => Zero,
            }
        }
        S::BytesLeft => {
            if imm <= inside {
                First(base + inside - imm)
            } else {
                Zero
            }
        }
        S::BytesRight => {
            if inside + imm < 16 {
                First(base + inside + imm)
            } else {
                Zero
            }
        }
        S::TwoByDoublewords => {
            let n = base + (imm >> (inside / 4 * 2) & 3) * 4 + inside % 4;
            if inside < 8 { First(n) } else { Second(n) }
        }
        S::TwoByQuadwords => {
            let n = base + (imm >> (at / 8) & 1) * 8 + inside % 8;
            if inside < 8 { First(n) } else { Second(n) }
        }
        S::BlendWords => {
            if imm >> (inside / 2) & 1 == 1 {
                Second(at)
            } else {
                First(at)
            }
        }
        S::BlendDoublewords => {
            if imm >> (at / 4) & 1 == 1 {
                Second(at)
            } else {
                First(at)
            }
        }
        S::Broadcast(lane) => First(at % usize::from(lane)),
        S::InsertHalf(piece) => {
            let piece = usize::from(piece);
            let to = imm % (len / piece) * piece;
            if (to..to + piece).contains(&at) { Second(at - to) } else { First(at) }
        }
        S::ExtractHalf(piece) => {
            let piece = usize::from(piece);
            First(imm * piece + at)
        }
        S::Halves => {
            let control = imm >> (at / 16 * 4);
            let from = (control & 1) * 16 + inside;
            if control & 8 != 0 {
                Zero
            } else if control & 2 != 0 {
                Second(from)
            } else {
                First(from)
            }
        }
    })
}
