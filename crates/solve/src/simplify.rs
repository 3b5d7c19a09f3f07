//! Builds expressions. Each function returns the simplest form that it knows.

use crate::eval::apply;
use crate::expr::{Arena, Expr, NO_ARGS, Node, Op, mask};

impl Arena {
    fn folded(&mut self, op: Op, width: u8, args: &[Expr], imm: u64) -> Expr {
        let mut node = Node { op, width, args: NO_ARGS, imm };
        node.args[..args.len()].copy_from_slice(args);
        let mut numbers = [0; 3];
        for (number, &arg) in numbers.iter_mut().zip(args) {
            match self.number(arg) {
                Some(value) => *number = value,
                None => return self.make(node),
            }
        }
        let value = apply(&node, numbers, self.width(args[0]), |n| self.width(args[n]));
        self.constant(width, value)
    }

    pub fn not(&mut self, a: Expr) -> Expr {
        let node = *self.node(a);
        match node.op {
            Op::Not => node.args[0],
            _ => self.folded(Op::Not, node.width, &[a], 0),
        }
    }

    pub fn neg(&mut self, a: Expr) -> Expr {
        let width = self.width(a);
        self.folded(Op::Neg, width, &[a], 0)
    }

    /// An operation of two operands of equal width whose order does not matter: numbers come second.
    fn ordered(&mut self, op: Op, a: Expr, b: Expr) -> Expr {
        let (a, b) = match (self.number(a), self.number(b)) {
            (Some(_), None) => (b, a),
            (None, None) if a > b => (b, a),
            _ => (a, b),
        };
        let width = self.width(a);
        self.folded(op, width, &[a, b], 0)
    }

    pub fn and(&mut self, a: Expr, b: Expr) -> Expr {
        let width = self.width(a);
        for (x, y) in [(a, b), (b, a)] {
            match self.number(x) {
                Some(0) => return x,
                Some(ones) if ones == mask(width) => return y,
                // The lower bits alone: 0…01…1.
                Some(ones) if ones & (ones + 1) == 0 && self.number(y).is_none() => {
                    let low = self.extract(y, 0, ones.count_ones() as u8);
                    return self.zext(low, width);
                }
                Some(outer) => {
                    let node = *self.node(y);
                    if node.op == Op::And
                        && let Some(inner) = self.number(node.args[1])
                    {
                        let both = self.constant(width, inner & outer);
                        return self.and(node.args[0], both);
                    }
                }
                None => {}
            }
        }
        if a == b {
            return a;
        }
        self.ordered(Op::And, a, b)
    }

    pub fn or(&mut self, a: Expr, b: Expr) -> Expr {
        let width = self.width(a);
        for (x, y) in [(a, b), (b, a)] {
            match self.number(x) {
                Some(0) => return y,
                Some(ones) if ones == mask(width) => return x,
                _ => {}
            }
        }
        if a == b {
            return a;
        }
        if let Some(put) = self.disjoint(a, b).or_else(|| self.disjoint(b, a)) {
            return put;
        }
        self.ordered(Op::Or, a, b)
    }

    /// `x << n | zext(y)` where y has at most n bits: the parts side by side.
    fn disjoint(&mut self, high: Expr, low: Expr) -> Option<Expr> {
        let (upper, lower) = (*self.node(high), *self.node(low));
        let width = upper.width;
        if upper.op != Op::Concat || self.number(upper.args[1]) != Some(0) {
            return None;
        }
        let shift = self.width(upper.args[1]);
        let used = match lower.op {
            Op::ZExt => self.width(lower.args[0]),
            Op::Concat if self.number(lower.args[0]) == Some(0) => self.width(lower.args[1]),
            Op::Const => (64 - lower.imm.leading_zeros()) as u8,
            _ => width,
        };
        (used <= shift).then(|| {
            let low = self.extract(low, 0, shift);
            self.concat(upper.args[0], low)
        })
    }

    pub fn xor(&mut self, a: Expr, b: Expr) -> Expr {
        let width = self.width(a);
        if a == b {
            return self.constant(width, 0);
        }
        for (x, y) in [(a, b), (b, a)] {
            match self.number(x) {
                Some(0) => return y,
                Some(ones) if ones == mask(width) => return self.not(y),
                Some(outer) => {
                    let node = *self.node(y);
                    if node.op == Op::Xor
                        && let Some(inner) = self.number(node.args[1])
                    {
                        let both = self.constant(width, inner ^ outer);
                        return self.xor(node.args[0], both);
                    }
                }
                None => {}
            }
        }
        self.ordered(Op::Xor, a, b)
    }

    pub fn add(&mut self, a: Expr, b: Expr) -> Expr {
        let width = self.width(a);
        for (x, y) in [(a, b), (b, a)] {
            match self.number(x) {
                Some(0) => return y,
                Some(outer) => {
                    let node = *self.node(y);
                    if node.op == Op::Add
                        && let Some(inner) = self.number(node.args[1])
                    {
                        let both = self.constant(width, inner.wrapping_add(outer));
                        return self.add(node.args[0], both);
                    }
                }
                None => {}
            }
        }
        self.ordered(Op::Add, a, b)
    }

    pub fn sub(&mut self, a: Expr, b: Expr) -> Expr {
        let width = self.width(a);
        if a == b {
            return self.constant(width, 0);
        }
        if let Some(number) = self.number(b) {
            let negative = self.constant(width, number.wrapping_neg());
            return self.add(a, negative);
        }
        self.folded(Op::Sub, width, &[a, b], 0)
    }

    pub fn mul(&mut self, a: Expr, b: Expr) -> Expr {
        let width = self.width(a);
        for (x, y) in [(a, b), (b, a)] {
            match self.number(x) {
                Some(0) => return x,
                Some(1) => return y,
                Some(power) if power.is_power_of_two() => {
                    let shift = self.constant(width, power.trailing_zeros().into());
                    return self.shl(y, shift);
                }
                _ => {}
            }
        }
        self.ordered(Op::Mul, a, b)
    }

    pub fn umul_high(&mut self, a: Expr, b: Expr) -> Expr {
        self.ordered(Op::UMulHigh, a, b)
    }

    pub fn smul_high(&mut self, a: Expr, b: Expr) -> Expr {
        self.ordered(Op::SMulHigh, a, b)
    }

    /// `UDiv`, `URem`, `SDiv` or `SRem`.
    pub fn divide(&mut self, op: Op, a: Expr, b: Expr) -> Expr {
        let width = self.width(a);
        if let Some(power) = self.number(b).filter(|n| n.is_power_of_two()) {
            let shift = self.constant(width, power.trailing_zeros().into());
            match op {
                Op::UDiv => return self.lshr(a, shift),
                Op::URem => {
                    let low = self.constant(width, power - 1);
                    return self.and(a, low);
                }
                _ => {}
            }
        }
        self.folded(op, width, &[a, b], 0)
    }

    pub fn shl(&mut self, a: Expr, by: Expr) -> Expr {
        let width = self.width(a);
        match self.number(by) {
            Some(0) => a,
            Some(n) if n >= width.into() => self.constant(width, 0),
            Some(n) => {
                let n = n as u8;
                let zeros = self.constant(n, 0);
                let kept = self.extract(a, 0, width - n);
                self.concat(kept, zeros)
            }
            None => self.folded(Op::Shl, width, &[a, by], 0),
        }
    }

    pub fn lshr(&mut self, a: Expr, by: Expr) -> Expr {
        let width = self.width(a);
        match self.number(by) {
            Some(0) => a,
            Some(n) if n >= width.into() => self.constant(width, 0),
            Some(n) => {
                let kept = self.extract(a, n as u8, width - n as u8);
                self.zext(kept, width)
            }
            None => self.folded(Op::LShr, width, &[a, by], 0),
        }
    }

    pub fn ashr(&mut self, a: Expr, by: Expr) -> Expr {
        let width = self.width(a);
        match self.number(by) {
            Some(0) => a,
            Some(n) => {
                let n = n.min(u64::from(width) - 1) as u8;
                let kept = self.extract(a, n, width - n);
                self.sext(kept, width)
            }
            None => self.folded(Op::AShr, width, &[a, by], 0),
        }
    }

    pub fn eq(&mut self, a: Expr, b: Expr) -> Expr {
        if a == b {
            return self.truth(true);
        }
        let (a, b) = if self.number(a).is_some() { (b, a) } else { (a, b) };
        if let Some(number) = self.number(b)
            && let Some(simple) = self.eq_number(a, number)
        {
            return simple;
        }
        let (a, b) = if self.number(b).is_none() && a > b { (b, a) } else { (a, b) };
        self.folded(Op::Eq, 1, &[a, b], 0)
    }

    fn eq_number(&mut self, a: Expr, number: u64) -> Option<Expr> {
        let node = *self.node(a);
        let [x, y, z] = node.args;
        let again = |arena: &mut Arena, x: Expr, value: u64| {
            let value = arena.constant(arena.width(x), value);
            Some(arena.eq(x, value))
        };
        match node.op {
            _ if node.width == 1 => Some(if number == 1 { a } else { self.not(a) }),
            Op::ZExt if number > mask(self.width(x)) => Some(self.truth(false)),
            Op::ZExt => again(self, x, number),
            Op::Not => again(self, x, !number),
            Op::Xor => self.number(y).and_then(|n| again(self, x, n ^ number)),
            Op::Add => self.number(y).and_then(|n| again(self, x, number.wrapping_sub(n))),
            Op::Concat if self.number(y).is_some() || self.number(x).is_some() => {
                let low = self.width(y);
                let (upper, lower) = (number >> low, number & mask(low));
                let upper = again(self, x, upper)?;
                let lower = again(self, y, lower)?;
                Some(self.and(upper, lower))
            }
            // A choice between numbers, as flags make it.
            Op::Ite => match (self.number(y), self.number(z)) {
                (Some(y), Some(z)) => Some(match (y == number, z == number) {
                    (true, true) => self.truth(true),
                    (false, false) => self.truth(false),
                    (true, false) => x,
                    (false, true) => self.not(x),
                }),
                _ => None,
            },
            Op::Sub if number == 0 => Some(self.eq(x, y)),
            _ => None,
        }
    }

    pub fn ult(&mut self, a: Expr, b: Expr) -> Expr {
        if a == b || self.number(b) == Some(0) {
            return self.truth(false);
        }
        if self.number(b) == Some(1) {
            let zero = self.constant(self.width(a), 0);
            return self.eq(a, zero);
        }
        // Compared where the value is.
        let (x, y) = (*self.node(a), *self.node(b));
        if x.op == Op::ZExt
            && let Some(number) = self.number(b)
        {
            let narrow = self.width(x.args[0]);
            if number > mask(narrow) {
                return self.truth(true);
            }
            let number = self.constant(narrow, number);
            return self.ult(x.args[0], number);
        }
        if y.op == Op::ZExt
            && let Some(number) = self.number(a)
        {
            let narrow = self.width(y.args[0]);
            if number >= mask(narrow) {
                return self.truth(false);
            }
            let number = self.constant(narrow, number);
            return self.ult(number, y.args[0]);
        }
        self.folded(Op::ULt, 1, &[a, b], 0)
    }

    pub fn slt(&mut self, a: Expr, b: Expr) -> Expr {
        if a == b {
            return self.truth(false);
        }
        if self.number(b) == Some(0) {
            let width = self.width(a);
            return self.extract(a, width - 1, 1);
        }
        self.folded(Op::SLt, 1, &[a, b], 0)
    }

    pub fn ite(&mut self, condition: Expr, yes: Expr, no: Expr) -> Expr {
        if yes == no {
            return yes;
        }
        match self.number(condition) {
            Some(1) => return yes,
            Some(_) => return no,
            None => {}
        }
        if self.width(yes) == 1 && self.number(yes) == Some(1) && self.number(no) == Some(0) {
            return condition;
        }
        if self.width(yes) == 1 && self.number(yes) == Some(0) && self.number(no) == Some(1) {
            return self.not(condition);
        }
        let width = self.width(yes);
        self.folded(Op::Ite, width, &[condition, yes, no], 0)
    }

    /// `width` bits from bit `low` on.
    pub fn extract(&mut self, a: Expr, low: u8, width: u8) -> Expr {
        let node = *self.node(a);
        if low == 0 && width == node.width {
            return a;
        }
        match node.op {
            Op::Const => return self.constant(width, node.imm >> low),
            Op::Extract => return self.extract(node.args[0], low + node.imm as u8, width),
            Op::Concat => {
                let [high, lower, _] = node.args;
                let cut = self.width(lower);
                if low >= cut {
                    return self.extract(high, low - cut, width);
                }
                if low + width <= cut {
                    return self.extract(lower, low, width);
                }
                let upper = self.extract(high, 0, low + width - cut);
                let rest = self.extract(lower, low, cut - low);
                return self.concat(upper, rest);
            }
            Op::ZExt => {
                let inner = self.width(node.args[0]);
                if low >= inner {
                    return self.constant(width, 0);
                }
                if low + width <= inner {
                    return self.extract(node.args[0], low, width);
                }
                let kept = self.extract(node.args[0], low, inner - low);
                return self.zext(kept, width);
            }
            Op::SExt if low + width <= self.width(node.args[0]) => return self.extract(node.args[0], low, width),
            Op::And | Op::Or | Op::Xor if self.number(node.args[1]).is_some() => {
                let x = self.extract(node.args[0], low, width);
                let y = self.extract(node.args[1], low, width);
                return match node.op {
                    Op::And => self.and(x, y),
                    Op::Or => self.or(x, y),
                    _ => self.xor(x, y),
                };
            }
            Op::Not => {
                let x = self.extract(node.args[0], low, width);
                return self.not(x);
            }
            Op::Ite if self.number(node.args[1]).is_some() && self.number(node.args[2]).is_some() => {
                let yes = self.extract(node.args[1], low, width);
                let no = self.extract(node.args[2], low, width);
                return self.ite(node.args[0], yes, no);
            }
            _ => {}
        }
        self.make(Node { op: Op::Extract, width, args: [a, Expr(0), Expr(0)], imm: low.into() })
    }

    pub fn concat(&mut self, high: Expr, low: Expr) -> Expr {
        let (upper, lower) = (*self.node(high), *self.node(low));
        let width = upper.width + lower.width;
        // Pieces of one value, side by side.
        if upper.op == Op::Extract {
            let whole = upper.args[0];
            if lower.op == Op::Extract && lower.args[0] == whole && lower.imm + u64::from(lower.width) == upper.imm {
                return self.extract(whole, lower.imm as u8, width);
            }
        }
        // Sums of a low part: kept flat to the right, so that pieces meet.
        if lower.op == Op::Concat {
            let joined = self.concat_pair(high, lower.args[0]);
            if let Some(joined) = joined {
                return self.concat(joined, lower.args[1]);
            }
        }
        if upper.op == Op::Concat
            && let Some(joined) = self.concat_pair(upper.args[1], low)
        {
            return self.concat(upper.args[0], joined);
        }
        if upper.op == Op::Const && upper.imm == 0 {
            return self.zext(low, width);
        }
        self.folded(Op::Concat, width, &[high, low], 0)
    }

    /// The two put together, if that is one simple thing.
    fn concat_pair(&mut self, high: Expr, low: Expr) -> Option<Expr> {
        let (upper, lower) = (*self.node(high), *self.node(low));
        match (upper.op, lower.op) {
            (Op::Const, Op::Const) => {
                Some(self.constant(upper.width + lower.width, upper.imm << lower.width | lower.imm))
            }
            (Op::Extract, Op::Extract)
                if upper.args[0] == lower.args[0] && lower.imm + u64::from(lower.width) == upper.imm =>
            {
                Some(self.extract(upper.args[0], lower.imm as u8, upper.width + lower.width))
            }
            _ => None,
        }
    }

    pub fn zext(&mut self, a: Expr, width: u8) -> Expr {
        let node = *self.node(a);
        if node.width == width {
            return a;
        }
        match node.op {
            Op::ZExt => self.zext(node.args[0], width),
            _ => self.folded(Op::ZExt, width, &[a], 0),
        }
    }

    pub fn sext(&mut self, a: Expr, width: u8) -> Expr {
        let node = *self.node(a);
        if node.width == width {
            return a;
        }
        match node.op {
            Op::SExt => self.sext(node.args[0], width),
            // The sign is zero.
            Op::ZExt => self.zext(node.args[0], width),
            _ => self.folded(Op::SExt, width, &[a], 0),
        }
    }

    /// `Popcnt`, `Ctz` or `Clz`.
    pub fn count(&mut self, op: Op, a: Expr) -> Expr {
        let width = self.width(a);
        self.folded(op, width, &[a], 0)
    }
}
