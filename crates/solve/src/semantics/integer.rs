//! Arithmetic, logic and bits of general registers.

use iced_x86::{Code, Mnemonic, Register};

use super::table::{Arithmetic, BitTest, Bmi, CarryFlag, Count, Unary};
use crate::expr::{Expr, Op};
use crate::flags::{self, Flag, FlagsKind, Origin};
use crate::frame::{Concrete, Done, FLAGS, InstructionFrame};

impl InstructionFrame<'_> {
    pub(super) fn flags_of(&mut self, kind: FlagsKind, a: Expr, b: Expr, result: Expr) {
        if [a, b, result].iter().all(|&e| self.arena.number(e).is_some()) {
            self.registers.flags.forget();
        } else {
            self.registers.flags.set_origin(Origin { kind, a, b, result });
        }
        let live = self.registers.flags.is_followed();
        self.registers.mark(FLAGS, live);
    }

    /// Sets one flag; `None`: undefined.
    pub(super) fn set_flag(&mut self, flag: Flag, value: Option<Expr>) {
        let value = value.filter(|&e| self.arena.number(e).is_none());
        self.registers.flags.set(flag, value);
        let live = self.registers.flags.is_followed();
        self.registers.mark(FLAGS, live);
    }

    /// Carry, as a bit.
    pub(super) fn carry(&mut self) -> Done<Expr> {
        match self.registers.flags.get(self.arena, Flag::Carry) {
            Some(carry) => Ok(carry),
            None => {
                let carry = self.known.condition().ok_or(Concrete::NotLogged)?;
                Ok(self.arena.truth(carry))
            }
        }
    }

    /// The condition that the instruction tests.
    pub(super) fn tested(&mut self) -> Done<Expr> {
        let number = self.instruction.condition_code() as u8 - 1;
        match self.registers.flags.condition(self.arena, number) {
            Some(condition) => Ok(condition),
            // Flags that are followed in part: their course is that of this run.
            None => {
                let condition = self.known.condition().ok_or(Concrete::NotLogged)?;
                Ok(self.arena.truth(condition))
            }
        }
    }

    pub(super) fn zero(&mut self, width: u8) -> Expr {
        self.arena.constant(width, 0)
    }

    pub(super) fn is_zero(&mut self, value: Expr) -> Expr {
        let zero = self.zero(self.arena.width(value));
        self.arena.eq(value, zero)
    }
}

pub fn arithmetic(f: &mut InstructionFrame<'_>, what: Arithmetic) -> Done {
    use Arithmetic as A;
    let width = f.width(0)?;
    // A register against itself: the result does not depend on it.
    let same = f.instruction.op_count() == 2
        && f.instruction.op0_register() != Register::None
        && f.instruction.op0_register() == f.instruction.op1_register();
    if same && matches!(what, A::Xor | A::Sub) {
        let zero = f.zero(width);
        f.set(0, zero)?;
        f.registers.flags.forget();
        f.registers.mark(FLAGS, false);
        return Ok(());
    }
    let (a, b) = (f.value(0, width)?, f.value(1, width)?);
    let (kind, result) = match what {
        A::Add => (FlagsKind::Add, f.arena.add(a, b)),
        A::Sub | A::Compare => (FlagsKind::Sub, f.arena.sub(a, b)),
        A::And | A::Test => (FlagsKind::Logic, f.arena.and(a, b)),
        A::Or => (FlagsKind::Logic, f.arena.or(a, b)),
        A::Xor => (FlagsKind::Logic, f.arena.xor(a, b)),
        A::AddCarry | A::SubBorrow => {
            let carry = f.carry()?;
            let carry = f.arena.zext(carry, width);
            if what == A::AddCarry {
                let sum = f.arena.add(a, b);
                (FlagsKind::Add, f.arena.add(sum, carry))
            } else {
                let difference = f.arena.sub(a, b);
                (FlagsKind::Sub, f.arena.sub(difference, carry))
            }
        }
    };
    if !matches!(what, A::Compare | A::Test) {
        f.set(0, result)?;
    }
    f.flags_of(kind, a, b, result);
    Ok(())
}

pub fn unary(f: &mut InstructionFrame<'_>, what: Unary) -> Done {
    let width = f.width(0)?;
    let a = f.value(0, width)?;
    match what {
        Unary::Not => {
            let result = f.arena.not(a);
            f.set(0, result)
        }
        Unary::Neg => {
            let zero = f.zero(width);
            let result = f.arena.sub(zero, a);
            f.set(0, result)?;
            f.flags_of(FlagsKind::Sub, zero, a, result);
            Ok(())
        }
        Unary::Inc | Unary::Dec => {
            let one = f.arena.constant(width, 1);
            let carry = f.registers.flags.get(f.arena, Flag::Carry);
            let (kind, result) = match what {
                Unary::Inc => (FlagsKind::Add, f.arena.add(a, one)),
                _ => (FlagsKind::Sub, f.arena.sub(a, one)),
            };
            f.set(0, result)?;
            f.flags_of(kind, a, one, result);
            f.set_flag(Flag::Carry, carry);
            Ok(())
        }
    }
}

/// The flags that multiplication leaves undefined.
fn undefined(f: &mut InstructionFrame<'_>, list: &[Flag]) {
    for &flag in list {
        f.set_flag(flag, None);
    }
}

const BUT_CARRY: [Flag; 5] = [Flag::Parity, Flag::Adjust, Flag::Zero, Flag::Sign, Flag::Overflow];

pub fn multiply(f: &mut InstructionFrame<'_>, signed: bool) -> Done {
    let width = f.width(0)?;
    let count = f.instruction.op_count();
    let accumulator = [Register::AL, Register::AX, Register::EAX, Register::RAX][width.trailing_zeros() as usize - 3];
    let (a, b) = match count {
        1 => (f.register(accumulator)?, f.value(0, width)?),
        2 => (f.value(0, width)?, f.value(1, width)?),
        _ => (f.value(1, width)?, f.value(2, width)?),
    };
    let low = f.arena.mul(a, b);
    let high = if signed { f.arena.smul_high(a, b) } else { f.arena.umul_high(a, b) };
    let expected = if signed {
        let sign = f.arena.extract(low, width - 1, 1);
        f.arena.sext(sign, width)
    } else {
        f.zero(width)
    };
    if count > 1 {
        f.set(0, low)?;
    } else if width == 8 {
        let both = f.arena.concat(high, low);
        f.set_register(Register::AX, both);
    } else {
        f.set_register(accumulator, low);
        let upper = [Register::DX, Register::EDX, Register::RDX][width.trailing_zeros() as usize - 4];
        f.set_register(upper, high);
    }
    let same = f.arena.eq(high, expected);
    let carry = f.arena.not(same);
    undefined(f, &BUT_CARRY);
    f.set_flag(Flag::Carry, Some(carry));
    f.set_flag(Flag::Overflow, Some(carry));
    Ok(())
}

pub fn mulx(f: &mut InstructionFrame<'_>) -> Done {
    let width = f.width(0)?;
    let b = f.value(2, width)?;
    let a = f.register(if width == 64 { Register::RDX } else { Register::EDX })?;
    let (low, high) = (f.arena.mul(a, b), f.arena.umul_high(a, b));
    f.set(1, low)?;
    // If both are one register, it gets the upper half.
    f.set(0, high)
}

pub fn divide(f: &mut InstructionFrame<'_>, signed: bool) -> Done {
    let width = f.width(0)?;
    let divisor = f.value(0, width)?;
    let (low, high) = match width {
        8 => (f.register(Register::AL)?, f.register(Register::AH)?),
        16 => (f.register(Register::AX)?, f.register(Register::DX)?),
        32 => (f.register(Register::EAX)?, f.register(Register::EDX)?),
        _ => (f.register(Register::RAX)?, f.register(Register::RDX)?),
    };
    let (quotient, remainder) = if signed { (Op::SDiv, Op::SRem) } else { (Op::UDiv, Op::URem) };
    // Dividends of 128 bits only if the upper half is an extension of the lower.
    let extended = if signed {
        let sign = f.arena.extract(low, width - 1, 1);
        f.arena.sext(sign, width)
    } else {
        f.zero(width)
    };
    let (dividend, wide) = if high == extended {
        (low, width)
    } else if width < 64 {
        (f.arena.concat(high, low), width * 2)
    } else {
        return Err(Concrete::Operands);
    };
    let divisor = if signed { f.arena.sext(divisor, wide) } else { f.arena.zext(divisor, wide) };
    let (q, r) = (f.arena.divide(quotient, dividend, divisor), f.arena.divide(remainder, dividend, divisor));
    let (q, r) = (f.arena.extract(q, 0, width), f.arena.extract(r, 0, width));
    if width == 8 {
        let both = f.arena.concat(r, q);
        f.set_register(Register::AX, both);
    } else {
        let at = width.trailing_zeros() as usize - 4;
        f.set_register([Register::AX, Register::EAX, Register::RAX][at], q);
        f.set_register([Register::DX, Register::EDX, Register::RDX][at], r);
    }
    undefined(f, &flags::ALL);
    Ok(())
}

pub fn count(f: &mut InstructionFrame<'_>, what: Count) -> Done {
    let width = f.width(0)?;
    let a = f.value(1, width)?;
    let empty = f.is_zero(a);
    match what {
        Count::Popcnt => {
            let result = f.arena.count(Op::Popcnt, a);
            f.set(0, result)?;
            let no = f.arena.truth(false);
            for flag in flags::ALL {
                f.set_flag(flag, Some(no));
            }
            f.set_flag(Flag::Zero, Some(empty));
        }
        Count::Tzcnt | Count::Lzcnt => {
            let result = f.arena.count(if what == Count::Tzcnt { Op::Ctz } else { Op::Clz }, a);
            f.set(0, result)?;
            let none = f.is_zero(result);
            undefined(f, &flags::ALL);
            f.set_flag(Flag::Carry, Some(empty));
            f.set_flag(Flag::Zero, Some(none));
        }
        Count::Bsf | Count::Bsr => {
            let found = if what == Count::Bsf {
                f.arena.count(Op::Ctz, a)
            } else {
                let leading = f.arena.count(Op::Clz, a);
                let top = f.arena.constant(width, u64::from(width) - 1);
                f.arena.sub(top, leading)
            };
            // Nothing found: the destination stays, upper half included (both makers' processors do that).
            let to = f.instruction.op0_register();
            if f.arena.number(empty) != Some(0)
                && let Ok(before) = f.register(if width == 16 { to } else { to.full_register() })
            {
                let wide = f.arena.width(before);
                let found = f.arena.zext(found, wide);
                let result = f.arena.ite(empty, before, found);
                f.set_register(if width == 16 { to } else { to.full_register() }, result);
            } else {
                f.set(0, found)?;
            }
            undefined(f, &flags::ALL);
            f.set_flag(Flag::Zero, Some(empty));
        }
    }
    Ok(())
}

pub fn bit_test(f: &mut InstructionFrame<'_>, what: BitTest) -> Done {
    let width = f.width(0)?;
    // With a register, memory beyond the operand is reached.
    if f.instruction.op0_kind() == iced_x86::OpKind::Memory && f.instruction.op1_kind() == iced_x86::OpKind::Register {
        return Err(Concrete::Operands);
    }
    let (a, by) = (f.value(0, width)?, f.value(1, width)?);
    let low = f.arena.constant(width, u64::from(width) - 1);
    let by = f.arena.and(by, low);
    let shifted = f.arena.lshr(a, by);
    let bit = f.arena.extract(shifted, 0, 1);
    let one = f.arena.constant(width, 1);
    let mask = f.arena.shl(one, by);
    let result = match what {
        BitTest::Test => None,
        BitTest::Set => Some(f.arena.or(a, mask)),
        BitTest::Reset => {
            let inverse = f.arena.not(mask);
            Some(f.arena.and(a, inverse))
        }
        BitTest::Complement => Some(f.arena.xor(a, mask)),
    };
    if let Some(result) = result {
        f.set(0, result)?;
    }
    // Zero is kept.
    let zero = f.registers.flags.get(f.arena, Flag::Zero);
    undefined(f, &BUT_CARRY);
    f.set_flag(Flag::Zero, zero);
    f.set_flag(Flag::Carry, Some(bit));
    Ok(())
}

pub fn bmi(f: &mut InstructionFrame<'_>, what: Bmi) -> Done {
    let width = f.width(0)?;
    let a = f.value(1, width)?;
    let one = f.arena.constant(width, 1);
    let zero = f.zero(width);
    let empty = f.arena.eq(a, zero);
    let (result, carry) = match what {
        Bmi::AndNot => {
            let b = f.value(2, width)?;
            let inverse = f.arena.not(a);
            (f.arena.and(inverse, b), f.arena.truth(false))
        }
        Bmi::LowestSet => {
            let negative = f.arena.neg(a);
            let not = f.arena.not(empty);
            (f.arena.and(a, negative), not)
        }
        Bmi::ResetLowest => {
            let less = f.arena.sub(a, one);
            (f.arena.and(a, less), empty)
        }
        Bmi::MaskToLowest => {
            let less = f.arena.sub(a, one);
            (f.arena.xor(a, less), empty)
        }
        Bmi::ZeroHigh => {
            let index = f.value(2, width)?;
            let index = f.arena.extract(index, 0, 8);
            let size = f.arena.constant(8, width.into());
            let inside = f.arena.ult(index, size);
            let index = f.arena.zext(index, width);
            let bit = f.arena.shl(one, index);
            let mask = f.arena.sub(bit, one);
            let cut = f.arena.and(a, mask);
            let outside = f.arena.not(inside);
            (f.arena.ite(inside, cut, a), outside)
        }
        Bmi::Extract => {
            let control = f.value(2, width)?;
            let (start, len) = (f.arena.extract(control, 0, 8), f.arena.extract(control, 8, 8));
            let (start, wide) = (f.arena.zext(start, width), f.arena.zext(len, width));
            let shifted = f.arena.lshr(a, start);
            let bit = f.arena.shl(one, wide);
            let mask = f.arena.sub(bit, one);
            let cut = f.arena.and(shifted, mask);
            let size = f.arena.constant(8, width.into());
            let inside = f.arena.ult(len, size);
            (f.arena.ite(inside, cut, shifted), f.arena.truth(false))
        }
    };
    f.set(0, result)?;
    let none = f.is_zero(result);
    let sign = f.arena.extract(result, width - 1, 1);
    let no = f.arena.truth(false);
    undefined(f, &flags::ALL);
    f.set_flag(Flag::Carry, Some(carry));
    f.set_flag(Flag::Overflow, Some(no));
    f.set_flag(Flag::Zero, Some(none));
    if what != Bmi::Extract {
        f.set_flag(Flag::Sign, Some(sign));
    }
    Ok(())
}

pub fn convert(f: &mut InstructionFrame<'_>) -> Done {
    use Register as R;
    let (from, to, upper) = match f.instruction.mnemonic() {
        Mnemonic::Cbw => (R::AL, R::AX, None),
        Mnemonic::Cwde => (R::AX, R::EAX, None),
        Mnemonic::Cdqe => (R::EAX, R::RAX, None),
        Mnemonic::Cwd => (R::AX, R::AX, Some(R::DX)),
        Mnemonic::Cdq => (R::EAX, R::EAX, Some(R::EDX)),
        _ => (R::RAX, R::RAX, Some(R::RDX)),
    };
    let a = f.register(from)?;
    let width = f.arena.width(a);
    match upper {
        None => {
            let result = f.arena.sext(a, width * 2);
            f.set_register(to, result);
        }
        Some(upper) => {
            let sign = f.arena.extract(a, width - 1, 1);
            let result = f.arena.sext(sign, width);
            f.set_register(upper, result);
        }
    }
    Ok(())
}

pub fn lea(f: &mut InstructionFrame<'_>) -> Done {
    let width = f.width(0)?;
    let i = f.instruction;
    let wide = if i.memory_base().is_gpr32() || i.memory_index().is_gpr32() { 32 } else { 64 };
    let mut sum = f.arena.constant(wide, i.memory_displacement64());
    for (register, scale) in [(i.memory_base(), 1), (i.memory_index(), i.memory_index_scale())] {
        if register.is_gpr() {
            let value = f.register(register)?;
            let scale = f.arena.constant(wide, scale.into());
            let scaled = f.arena.mul(value, scale);
            sum = f.arena.add(sum, scaled);
        } else if register != Register::None {
            return Err(Concrete::Operands);
        }
    }
    let result = if width > wide { f.arena.zext(sum, width) } else { f.arena.extract(sum, 0, width) };
    f.set(0, result)
}

pub fn set_condition(f: &mut InstructionFrame<'_>) -> Done {
    let condition = f.tested()?;
    let result = f.arena.zext(condition, 8);
    f.set(0, result)
}

pub fn compare_exchange(f: &mut InstructionFrame<'_>) -> Done {
    let width = f.width(0)?;
    let accumulator = [Register::AL, Register::AX, Register::EAX, Register::RAX][width.trailing_zeros() as usize - 3];
    let (destination, source, expected) = (f.value(0, width)?, f.value(1, width)?, f.register(accumulator)?);
    let difference = f.arena.sub(expected, destination);
    let equal = f.arena.eq(expected, destination);
    let stored = f.arena.ite(equal, source, destination);
    let loaded = f.arena.ite(equal, expected, destination);
    // A 32-bit accumulator that stays keeps its upper half: another form than a write.
    if width == 32 && f.arena.number(equal) != Some(0) {
        let bytes = f.split(loaded);
        let bytes: Vec<_> = bytes.into_iter().map(|b| f.arena.number(b).is_none().then_some(b)).collect();
        if f.arena.number(equal).is_none() && f.registers.general[0][4..].iter().any(Option::is_some) {
            return Err(Concrete::Operands);
        }
        f.registers.set(accumulator, 0, &bytes);
    } else {
        f.set_register(accumulator, loaded);
    }
    f.set(0, stored)?;
    f.flags_of(FlagsKind::Sub, expected, destination, difference);
    Ok(())
}

pub fn exchange_add(f: &mut InstructionFrame<'_>) -> Done {
    let width = f.width(0)?;
    let (a, b) = (f.value(0, width)?, f.value(1, width)?);
    let sum = f.arena.add(a, b);
    f.set(1, a)?;
    f.set(0, sum)?;
    f.flags_of(FlagsKind::Add, a, b, sum);
    Ok(())
}

pub fn carry_flag(f: &mut InstructionFrame<'_>, what: CarryFlag) -> Done {
    let value = match what {
        CarryFlag::Clear => f.arena.truth(false),
        CarryFlag::Set => f.arena.truth(true),
        CarryFlag::Complement => {
            let carry = f.carry()?;
            f.arena.not(carry)
        }
    };
    f.set_flag(Flag::Carry, Some(value));
    Ok(())
}

pub fn flags_to_ah(f: &mut InstructionFrame<'_>) -> Done {
    let mut bits = Vec::new();
    for flag in [Flag::Carry, Flag::Parity, Flag::Adjust, Flag::Zero, Flag::Sign] {
        bits.push(f.registers.flags.get(f.arena, flag).ok_or(Concrete::NotLogged)?);
    }
    let (no, yes) = (f.arena.truth(false), f.arena.truth(true));
    // SF ZF 0 AF 0 PF 1 CF
    let mut byte = bits[4];
    for bit in [bits[3], no, bits[2], no, bits[1], yes, bits[0]] {
        byte = f.arena.concat(byte, bit);
    }
    f.set_register(Register::AH, byte);
    Ok(())
}

/// The polynomial of CRC-32C, reflected (SDM, CRC32).
const CRC32C: u64 = 0x82f6_3b78;

pub fn crc32(f: &mut InstructionFrame<'_>) -> Done {
    let width = f.width(1)?;
    let (wide, data) = (f.value(0, 32)?, f.value(1, width)?);
    let mut crc = f.arena.extract(wide, 0, 32);
    let polynomial = f.arena.constant(32, CRC32C);
    let none = f.zero(32);
    for at in 0..width {
        let (bit, low) = (f.arena.extract(data, at, 1), f.arena.extract(crc, 0, 1));
        let out = f.arena.xor(bit, low);
        let rest = f.arena.extract(crc, 1, 31);
        let rest = f.arena.zext(rest, 32);
        let fed = f.arena.ite(out, polynomial, none);
        crc = f.arena.xor(rest, fed);
    }
    let sixty_four = matches!(f.instruction.code(), Code::Crc32_r64_rm8 | Code::Crc32_r64_rm64);
    let result = if sixty_four { f.arena.zext(crc, 64) } else { crc };
    f.set(0, result)
}
