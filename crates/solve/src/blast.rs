//! Bit-blasting: turns expressions into clauses. Each bit is a variable, each operation the circuit that computes it.

use batsat::{Callbacks, Lit, Solver as Sat, SolverInterface, lbool};
use rustc_hash::FxHashMap;
use std::cell::Cell;

use crate::expr::{Arena, Expr, Node, Op};
use crate::solver::QueryLimit;

/// Ends the search when its work is done, which is the same on every machine; or when its time is over.
#[derive(Debug)]
pub struct Until {
    limit: QueryLimit,
    /// Steps that are left.
    work: Cell<u64>,
    by_clock: Cell<bool>,
}

impl Callbacks for Until {
    fn stop(&self) -> bool {
        let left = self.work.get();
        self.work.set(left.saturating_sub(1));
        if left.is_multiple_of(CLOCK) && self.limit.is_over() {
            self.by_clock.set(true);
        }
        left == 0 || self.by_clock.get()
    }
}

/// Steps between two looks at the clock.
const CLOCK: u64 = 64;

/// The clauses of one query.
pub struct Blaster<'a> {
    arena: &'a Arena,
    sat: Sat<Until>,
    bits: FxHashMap<Expr, Box<[Lit]>>,
    inputs: FxHashMap<u32, Box<[Lit]>>,
    /// Always true.
    yes: Lit,
    clauses: usize,
}

impl std::fmt::Debug for Blaster<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blaster").field("clauses", &self.clauses).finish_non_exhaustive()
    }
}

/// More clauses than this are not a query that ends in its time.
const MOST_CLAUSES: usize = 4_000_000;

impl<'a> Blaster<'a> {
    /// Gives up after `work` steps of the search, or when the limit is over.
    pub fn new(arena: &'a Arena, work: u64, limit: QueryLimit) -> Self {
        let until = Until { limit, work: Cell::new(work), by_clock: Cell::new(false) };
        let mut sat = Sat::new(batsat::SolverOpts::default(), until);
        let yes = Lit::new(sat.new_var_default(), true);
        sat.add_clause_reuse(&mut vec![yes]);
        Blaster { arena, sat, bits: FxHashMap::default(), inputs: FxHashMap::default(), yes, clauses: 0 }
    }

    /// The condition must hold. False: the query has become too large, or its time is over.
    pub fn require(&mut self, condition: Expr) -> bool {
        if !self.build(condition) {
            return false;
        }
        let bit = self.bits[&condition][0];
        self.clause(&[bit]);
        true
    }

    /// `Some(true)`: there is a solution. `None`: not known.
    pub fn solve(&mut self) -> Option<bool> {
        match self.sat.solve_limited(&[]) {
            answer if answer == lbool::TRUE => Some(true),
            answer if answer == lbool::FALSE => Some(false),
            _ => None,
        }
    }

    /// How large the query is.
    pub fn clauses(&self) -> usize {
        self.clauses
    }

    /// It was the clock that ended the search.
    pub fn is_late(&self) -> bool {
        self.sat.cb().by_clock.get()
    }

    /// The bytes of the input that the solution has.
    pub fn bytes(&self) -> Vec<(u32, u8)> {
        let byte = |bits: &[Lit]| {
            bits.iter()
                .enumerate()
                .fold(0, |byte, (at, &bit)| byte | u8::from(self.sat.value_lit(bit) == lbool::TRUE) << at)
        };
        let mut bytes: Vec<_> = self.inputs.iter().map(|(&index, bits)| (index, byte(bits))).collect();
        bytes.sort_unstable();
        bytes
    }

    fn clause(&mut self, literals: &[Lit]) {
        self.clauses += 1;
        self.sat.add_clause_reuse(&mut literals.to_vec());
    }

    fn fresh(&mut self) -> Lit {
        Lit::new(self.sat.new_var_default(), true)
    }

    fn build(&mut self, expr: Expr) -> bool {
        let mut stack = vec![expr];
        while let Some(&top) = stack.last() {
            if self.bits.contains_key(&top) {
                stack.pop();
                continue;
            }
            if self.clauses > MOST_CLAUSES || self.sat.cb().limit.is_over() {
                return false;
            }
            let node = *self.arena.node(top);
            let before = stack.len();
            stack.extend(node.operands().iter().filter(|operand| !self.bits.contains_key(operand)));
            if stack.len() == before {
                let bits = self.circuit(&node);
                self.bits.insert(top, bits.into());
                stack.pop();
            }
        }
        true
    }

    fn operand(&self, node: &Node, n: usize) -> Vec<Lit> {
        self.bits[&node.args[n]].to_vec()
    }

    fn constant(&self, value: bool) -> Lit {
        if value { self.yes } else { !self.yes }
    }

    fn known(&self, bit: Lit) -> Option<bool> {
        if bit == self.yes {
            Some(true)
        } else if bit == !self.yes {
            Some(false)
        } else {
            None
        }
    }

    fn circuit(&mut self, node: &Node) -> Vec<Lit> {
        let width = usize::from(node.width);
        match node.op {
            Op::Const => (0..width).map(|at| self.constant(node.imm >> at & 1 == 1)).collect(),
            Op::Input => {
                let bits: Vec<Lit> = (0..8).map(|_| self.fresh()).collect();
                self.inputs.insert(node.imm as u32, bits.clone().into());
                bits
            }
            _ => {
                let a = self.operand(node, 0);
                let b = if node.arity() > 1 { self.operand(node, 1) } else { Vec::new() };
                self.operation(node, a, b)
            }
        }
    }

    fn operation(&mut self, node: &Node, a: Vec<Lit>, b: Vec<Lit>) -> Vec<Lit> {
        let width = usize::from(node.width);
        let no = !self.yes;
        match node.op {
            Op::Not => a.iter().map(|&bit| !bit).collect(),
            Op::Neg => {
                let inverse: Vec<Lit> = a.iter().map(|&bit| !bit).collect();
                let zero = vec![no; width];
                self.add(&inverse, &zero, self.yes)
            }
            Op::And => self.each(&a, &b, Self::and),
            Op::Or => self.each(&a, &b, |s, x, y| !s.and(!x, !y)),
            Op::Xor => self.each(&a, &b, Self::xor),
            Op::Add => self.add(&a, &b, no),
            Op::Sub => {
                let inverse: Vec<Lit> = b.iter().map(|&bit| !bit).collect();
                self.add(&a, &inverse, self.yes)
            }
            Op::Mul => self.multiply(&a, &b, width),
            Op::UMulHigh | Op::SMulHigh => {
                let extend = |bits: &[Lit]| {
                    let top = if node.op == Op::SMulHigh { bits[width - 1] } else { no };
                    let mut wide = bits.to_vec();
                    wide.resize(width * 2, top);
                    wide
                };
                let product = self.multiply(&extend(&a), &extend(&b), width * 2);
                product[width..].to_vec()
            }
            Op::UDiv => self.divide(&a, &b).0,
            Op::URem => self.divide(&a, &b).1,
            Op::SDiv | Op::SRem => self.divide_signed(&a, &b, node.op == Op::SDiv),
            Op::Shl => self.shift(&a, &b, true, no),
            Op::LShr => self.shift(&a, &b, false, no),
            Op::AShr => self.shift(&a, &b, false, a[width - 1]),
            Op::Eq => {
                let same = self.each(&a, &b, |s, x, y| !s.xor(x, y));
                vec![self.all(&same)]
            }
            Op::ULt => vec![self.less(&a, &b)],
            Op::SLt => {
                let (mut a, mut b) = (a, b);
                let top = a.len() - 1;
                (a[top], b[top]) = (!a[top], !b[top]);
                vec![self.less(&a, &b)]
            }
            Op::Ite => {
                let c = self.operand(node, 2);
                b.iter().zip(&c).map(|(&yes, &no)| self.choose(a[0], yes, no)).collect()
            }
            Op::Extract => a[node.imm as usize..node.imm as usize + width].to_vec(),
            Op::Concat => b.into_iter().chain(a).collect(),
            Op::ZExt => a.into_iter().chain(std::iter::repeat(no)).take(width).collect(),
            Op::SExt => {
                let top = a[a.len() - 1];
                a.into_iter().chain(std::iter::repeat(top)).take(width).collect()
            }
            Op::Popcnt => {
                let mut sum = vec![no; width];
                for &bit in &a {
                    let mut one = vec![no; width];
                    one[0] = bit;
                    sum = self.add(&sum, &one, no);
                }
                sum
            }
            Op::Ctz | Op::Clz => {
                let numbers = |n: usize| -> Vec<bool> { (0..width).map(|at| n >> at & 1 == 1).collect() };
                let mut result: Vec<Lit> = numbers(width).into_iter().map(|bit| self.constant(bit)).collect();
                // The bit that counts first is looked at last.
                for n in (0..width).rev() {
                    let bit = a[if node.op == Op::Ctz { n } else { width - 1 - n }];
                    let number: Vec<Lit> = numbers(n).into_iter().map(|b| self.constant(b)).collect();
                    result = number.iter().zip(&result).map(|(&x, &y)| self.choose(bit, x, y)).collect();
                }
                result
            }
            Op::Const | Op::Input => Vec::new(),
        }
    }

    fn each(&mut self, a: &[Lit], b: &[Lit], what: impl Fn(&mut Self, Lit, Lit) -> Lit) -> Vec<Lit> {
        a.iter().zip(b).map(|(&x, &y)| what(self, x, y)).collect()
    }

    fn and(&mut self, a: Lit, b: Lit) -> Lit {
        match (self.known(a), self.known(b)) {
            (Some(false), _) | (_, Some(false)) => !self.yes,
            (Some(true), _) => b,
            (_, Some(true)) => a,
            _ if a == b => a,
            _ if a == !b => !self.yes,
            _ => {
                let out = self.fresh();
                self.clause(&[!a, !b, out]);
                self.clause(&[a, !out]);
                self.clause(&[b, !out]);
                out
            }
        }
    }

    fn all(&mut self, bits: &[Lit]) -> Lit {
        let bits: Vec<Lit> = bits.iter().copied().filter(|&bit| self.known(bit) != Some(true)).collect();
        match bits.len() {
            0 => self.yes,
            1 => bits[0],
            _ if bits.iter().any(|&bit| self.known(bit) == Some(false)) => !self.yes,
            _ => {
                let out = self.fresh();
                let mut long: Vec<Lit> = bits.iter().map(|&bit| !bit).collect();
                long.push(out);
                self.clause(&long);
                for &bit in &bits {
                    self.clause(&[bit, !out]);
                }
                out
            }
        }
    }

    fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        match (self.known(a), self.known(b)) {
            (Some(x), _) => {
                if x {
                    !b
                } else {
                    b
                }
            }
            (_, Some(y)) => {
                if y {
                    !a
                } else {
                    a
                }
            }
            _ if a == b => !self.yes,
            _ if a == !b => self.yes,
            _ => {
                let out = self.fresh();
                self.clause(&[!a, !b, !out]);
                self.clause(&[a, b, !out]);
                self.clause(&[a, !b, out]);
                self.clause(&[!a, b, out]);
                out
            }
        }
    }

    fn choose(&mut self, condition: Lit, yes: Lit, no: Lit) -> Lit {
        match self.known(condition) {
            Some(true) => return yes,
            Some(false) => return no,
            None if yes == no => return yes,
            None => {}
        }
        match (self.known(yes), self.known(no)) {
            (Some(true), _) => return !self.and(!condition, !no),
            (Some(false), _) => return self.and(!condition, no),
            (_, Some(true)) => return !self.and(condition, !yes),
            (_, Some(false)) => return self.and(condition, yes),
            _ => {}
        }
        let out = self.fresh();
        self.clause(&[!condition, !yes, out]);
        self.clause(&[!condition, yes, !out]);
        self.clause(&[condition, !no, out]);
        self.clause(&[condition, no, !out]);
        out
    }

    /// The sum, as wide as the operands.
    fn add(&mut self, a: &[Lit], b: &[Lit], carry: Lit) -> Vec<Lit> {
        let mut carry = carry;
        let mut sum = Vec::with_capacity(a.len());
        for (at, (&x, &y)) in a.iter().zip(b).enumerate() {
            let half = self.xor(x, y);
            sum.push(self.xor(half, carry));
            if at + 1 < a.len() {
                carry = self.majority(x, y, carry, half);
            }
        }
        sum
    }

    /// The carry: `x` if both are equal, what came in otherwise.
    fn majority(&mut self, x: Lit, _y: Lit, carry: Lit, half: Lit) -> Lit {
        self.choose(half, carry, x)
    }

    fn less(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let mut less = !self.yes;
        for (&x, &y) in a.iter().zip(b) {
            let differ = self.xor(x, y);
            less = self.choose(differ, y, less);
        }
        less
    }

    fn multiply(&mut self, a: &[Lit], b: &[Lit], width: usize) -> Vec<Lit> {
        let no = !self.yes;
        // Fewer additions with the number as the multiplier.
        let fixed = |bits: &[Lit]| bits.iter().filter(|&&bit| self.known(bit) != Some(false)).count();
        let (a, b) = if fixed(a) < fixed(b) { (b, a) } else { (a, b) };
        let mut sum = vec![no; width];
        for (at, &bit) in b.iter().enumerate() {
            if self.known(bit) == Some(false) {
                continue;
            }
            let mut row = vec![no; width];
            for (n, &x) in a.iter().enumerate().take(width - at) {
                row[at + n] = self.and(x, bit);
            }
            sum = self.add(&sum, &row, no);
        }
        sum
    }

    fn shift(&mut self, a: &[Lit], by: &[Lit], left: bool, fill: Lit) -> Vec<Lit> {
        let width = a.len();
        let mut value = a.to_vec();
        for (stage, &bit) in by.iter().enumerate() {
            let step = 1usize.checked_shl(stage as u32).unwrap_or(usize::MAX);
            let mut next = Vec::with_capacity(width);
            for at in 0..width {
                let from = if left { at.checked_sub(step) } else { at.checked_add(step).filter(|&n| n < width) };
                let moved = from.map_or(fill, |from| value[from]);
                next.push(self.choose(bit, moved, value[at]));
            }
            value = next;
        }
        value
    }

    /// Quotient and remainder, bit by bit from the top.
    fn divide(&mut self, a: &[Lit], b: &[Lit]) -> (Vec<Lit>, Vec<Lit>) {
        let width = a.len();
        let no = !self.yes;
        // One bit more, so that the subtraction tells which is less.
        let mut divisor = b.to_vec();
        divisor.push(no);
        let inverse: Vec<Lit> = divisor.iter().map(|&bit| !bit).collect();
        let mut rest = vec![no; width + 1];
        let mut quotient = vec![no; width];
        for at in (0..width).rev() {
            rest.rotate_right(1);
            rest[0] = a[at];
            let less = self.less(&rest, &divisor);
            let difference = self.add(&rest, &inverse, self.yes);
            rest = rest.iter().zip(&difference).map(|(&keep, &take)| self.choose(less, keep, take)).collect();
            quotient[at] = !less;
        }
        rest.truncate(width);
        (quotient, rest)
    }

    fn negated_if(&mut self, condition: Lit, bits: &[Lit]) -> Vec<Lit> {
        let turned: Vec<Lit> = bits.iter().map(|&bit| self.xor(bit, condition)).collect();
        let zero = vec![!self.yes; bits.len()];
        self.add(&turned, &zero, condition)
    }

    fn divide_signed(&mut self, a: &[Lit], b: &[Lit], quotient: bool) -> Vec<Lit> {
        let (sign_a, sign_b) = (a[a.len() - 1], b[b.len() - 1]);
        let (x, y) = (self.negated_if(sign_a, a), self.negated_if(sign_b, b));
        let (q, r) = self.divide(&x, &y);
        if quotient {
            let differ = self.xor(sign_a, sign_b);
            self.negated_if(differ, &q)
        } else {
            self.negated_if(sign_a, &r)
        }
    }
}
