//! Shifts and rotations of general registers. With a count of zero nothing happens, flags included.

use super::table::Shift;
use crate::expr::Expr;
use crate::flags::{self, Flag};
use crate::frame::{Concrete, Done, InstructionFrame};

/// Flags after a shift whose count may be zero: the old ones then.
fn set_unless_zero(f: &mut InstructionFrame<'_>, is_zero: Expr, flag: Flag, value: Option<Expr>) {
    let value = match f.arena.number(is_zero) {
        Some(1) => return,
        Some(_) => value,
        None => {
            let before = f.registers.flags.get(f.arena, flag);
            // One of the two is not followed: neither is the outcome.
            value.zip(before).map(|(value, before)| f.arena.ite(is_zero, before, value))
        }
    };
    f.set_flag(flag, value);
}

/// The count as `width` bits, cut as the processor does.
fn masked_count(f: &mut InstructionFrame<'_>, op: u32, width: u8) -> Done<Expr> {
    let by = f.value(op, 8)?;
    let by = f.arena.extract(by, 0, 8);
    let mask = f.arena.constant(8, if width == 64 { 63 } else { 31 });
    let by = f.arena.and(by, mask);
    Ok(if width < 8 { by } else { f.arena.zext(by, width) })
}

pub fn shift(f: &mut InstructionFrame<'_>, what: Shift) -> Done {
    let width = f.width(0)?;
    let a = f.value(0, width)?;
    let by = if f.instruction.op_count() == 1 { f.arena.constant(width, 1) } else { masked_count(f, 1, width)? };
    match what {
        Shift::Left | Shift::Right | Shift::RightSigned => plain(f, what, a, by, width),
        Shift::RotateLeft | Shift::RotateRight => rotate(f, what, a, by, width),
        Shift::RotateCarryLeft | Shift::RotateCarryRight => rotate_carry(f, what, a, by, width),
    }
}

fn plain(f: &mut InstructionFrame<'_>, what: Shift, a: Expr, by: Expr, width: u8) -> Done {
    let is_zero = f.is_zero(by);
    let one = f.arena.constant(width, 1);
    let before = f.arena.sub(by, one);
    // The last bit that goes out: the edge bit after one step less.
    let (result, carry, overflow) = match what {
        Shift::Left => {
            let (result, almost) = (f.arena.shl(a, by), f.arena.shl(a, before));
            let carry = f.arena.extract(almost, width - 1, 1);
            let sign = f.arena.extract(result, width - 1, 1);
            (result, carry, f.arena.xor(sign, carry))
        }
        Shift::Right => {
            let (result, almost) = (f.arena.lshr(a, by), f.arena.lshr(a, before));
            (result, f.arena.extract(almost, 0, 1), f.arena.extract(a, width - 1, 1))
        }
        _ => {
            let (result, almost) = (f.arena.ashr(a, by), f.arena.ashr(a, before));
            (result, f.arena.extract(almost, 0, 1), f.arena.truth(false))
        }
    };
    f.set(0, result)?;
    let sign = f.arena.extract(result, width - 1, 1);
    let empty = f.is_zero(result);
    let parity = flags::parity(f.arena, result);
    // Undefined where more is shifted than there is, and overflow for all counts but one.
    let size = f.arena.constant(8, width.into());
    let narrow = f.arena.extract(by, 0, 8);
    let over = f.arena.ult(size, narrow);
    let carry = (what == Shift::RightSigned || f.arena.number(over) == Some(0) || width >= 32).then_some(carry);
    let single = f.arena.number(by) == Some(1);
    set_unless_zero(f, is_zero, Flag::Carry, carry);
    set_unless_zero(f, is_zero, Flag::Zero, Some(empty));
    set_unless_zero(f, is_zero, Flag::Sign, Some(sign));
    set_unless_zero(f, is_zero, Flag::Parity, Some(parity));
    set_unless_zero(f, is_zero, Flag::Overflow, single.then_some(overflow));
    set_unless_zero(f, is_zero, Flag::Adjust, None);
    Ok(())
}

fn rotate(f: &mut InstructionFrame<'_>, what: Shift, a: Expr, by: Expr, width: u8) -> Done {
    let is_zero = f.is_zero(by);
    let low = f.arena.constant(width, u64::from(width) - 1);
    let turn = f.arena.and(by, low);
    let size = f.arena.constant(width, width.into());
    let back = f.arena.sub(size, turn);
    let (up, down) = if what == Shift::RotateLeft { (turn, back) } else { (back, turn) };
    let (left, right) = (f.arena.shl(a, up), f.arena.lshr(a, down));
    let result = f.arena.or(left, right);
    f.set(0, result)?;
    let (top, bottom) = (f.arena.extract(result, width - 1, 1), f.arena.extract(result, 0, 1));
    let (carry, overflow) = if what == Shift::RotateLeft {
        (bottom, f.arena.xor(top, bottom))
    } else {
        let second = f.arena.extract(result, width - 2, 1);
        (top, f.arena.xor(top, second))
    };
    let single = f.arena.number(by) == Some(1);
    set_unless_zero(f, is_zero, Flag::Carry, Some(carry));
    set_unless_zero(f, is_zero, Flag::Overflow, single.then_some(overflow));
    Ok(())
}

/// Only by a known count: there are 9, 17, 33 or 65 bits in the ring.
fn rotate_carry(f: &mut InstructionFrame<'_>, what: Shift, a: Expr, by: Expr, width: u8) -> Done {
    let by = f.arena.number(by).ok_or(Concrete::Operands)? as u32;
    let turn = by % (u32::from(width) + 1);
    let mut carry = f.carry()?;
    let mut value = a;
    for _ in 0..turn {
        if what == Shift::RotateCarryLeft {
            let out = f.arena.extract(value, width - 1, 1);
            let rest = f.arena.extract(value, 0, width - 1);
            value = f.arena.concat(rest, carry);
            carry = out;
        } else {
            let out = f.arena.extract(value, 0, 1);
            let rest = f.arena.extract(value, 1, width - 1);
            value = f.arena.concat(carry, rest);
            carry = out;
        }
    }
    let before = f.arena.extract(a, width - 1, 1);
    f.set(0, value)?;
    if by == 0 {
        return Ok(());
    }
    let top = f.arena.extract(value, width - 1, 1);
    let overflow = if what == Shift::RotateCarryLeft { f.arena.xor(top, carry) } else { f.arena.xor(top, before) };
    f.set_flag(Flag::Carry, Some(carry));
    f.set_flag(Flag::Overflow, (by == 1).then_some(overflow));
    Ok(())
}

pub fn double(f: &mut InstructionFrame<'_>, left: bool) -> Done {
    let width = f.width(0)?;
    if width < 32 {
        // Counts beyond the width are undefined, and processors differ.
        return Err(Concrete::Operands);
    }
    let (a, b, by) = (f.value(0, width)?, f.value(1, width)?, masked_count(f, 2, width)?);
    let is_zero = f.is_zero(by);
    let size = f.arena.constant(width, width.into());
    let one = f.arena.constant(width, 1);
    let back = f.arena.sub(size, by);
    let before = f.arena.sub(by, one);
    let (result, carry) = if left {
        let (up, down) = (f.arena.shl(a, by), f.arena.lshr(b, back));
        let almost = f.arena.shl(a, before);
        (f.arena.or(up, down), f.arena.extract(almost, width - 1, 1))
    } else {
        let (down, up) = (f.arena.lshr(a, by), f.arena.shl(b, back));
        let almost = f.arena.lshr(a, before);
        (f.arena.or(up, down), f.arena.extract(almost, 0, 1))
    };
    f.set(0, result)?;
    let sign = f.arena.extract(result, width - 1, 1);
    let empty = f.is_zero(result);
    let parity = flags::parity(f.arena, result);
    let (old, new) = (f.arena.extract(a, width - 1, 1), f.arena.extract(result, width - 1, 1));
    let turned = f.arena.xor(old, new);
    let single = f.arena.number(by) == Some(1);
    set_unless_zero(f, is_zero, Flag::Carry, Some(carry));
    set_unless_zero(f, is_zero, Flag::Zero, Some(empty));
    set_unless_zero(f, is_zero, Flag::Sign, Some(sign));
    set_unless_zero(f, is_zero, Flag::Parity, Some(parity));
    set_unless_zero(f, is_zero, Flag::Overflow, single.then_some(turned));
    set_unless_zero(f, is_zero, Flag::Adjust, None);
    Ok(())
}

/// `rorx`, `sarx`, `shlx`, `shrx`.
pub fn without_flags(f: &mut InstructionFrame<'_>, what: Shift) -> Done {
    let width = f.width(0)?;
    let a = f.value(1, width)?;
    let by = f.value(2, width)?;
    let low = f.arena.constant(width, u64::from(width) - 1);
    let by = f.arena.and(by, low);
    let result = match what {
        Shift::Left => f.arena.shl(a, by),
        Shift::Right => f.arena.lshr(a, by),
        Shift::RightSigned => f.arena.ashr(a, by),
        _ => {
            let size = f.arena.constant(width, width.into());
            let back = f.arena.sub(size, by);
            let (right, left) = (f.arena.lshr(a, by), f.arena.shl(a, back));
            f.arena.or(left, right)
        }
    };
    f.set(0, result)
}
