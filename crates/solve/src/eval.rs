//! Evaluates an expression for a given input.

use rustc_hash::FxHashMap;

use crate::expr::{Arena, Expr, Node, Op, mask, signed};

/// Evaluates expressions of one arena for one input; remembers what it knows.
#[derive(Debug)]
pub struct Evaluator<'a> {
    arena: &'a Arena,
    input: &'a [u8],
    known: FxHashMap<Expr, u64>,
}

impl<'a> Evaluator<'a> {
    /// Bytes beyond the end of `input` are zero.
    pub fn new(arena: &'a Arena, input: &'a [u8]) -> Self {
        Evaluator { arena, input, known: FxHashMap::default() }
    }

    pub fn value(&mut self, expr: Expr) -> u64 {
        let mut stack = vec![expr];
        while let Some(&top) = stack.last() {
            if self.known.contains_key(&top) {
                stack.pop();
                continue;
            }
            let node = *self.arena.node(top);
            let before = stack.len();
            stack.extend(node.operands().iter().filter(|operand| !self.known.contains_key(operand)));
            if stack.len() > before {
                continue;
            }
            let args = node.args.map(|arg| self.known.get(&arg).copied().unwrap_or(0));
            let value = match node.op {
                Op::Input => self.input.get(node.imm as usize).copied().unwrap_or(0).into(),
                _ => apply(&node, args, node.operands().first().map_or(0, |&a| self.arena.width(a)), |n| {
                    self.arena.width(node.args[n])
                }),
            };
            self.known.insert(top, value);
            stack.pop();
        }
        self.known[&expr]
    }

    pub fn holds(&mut self, condition: Expr) -> bool {
        self.value(condition) == 1
    }
}

/// The result of an operation on numbers. `first` is the width of the first operand, `width_of` that of any.
pub fn apply(node: &Node, [a, b, c]: [u64; 3], first: u8, width_of: impl Fn(usize) -> u8) -> u64 {
    let w = node.width;
    let (sa, sb) = (|| signed(a, first), || signed(b, first));
    let value = match node.op {
        Op::Const | Op::Input => node.imm,
        Op::Not => !a,
        Op::Neg => a.wrapping_neg(),
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::UMulHigh => ((u128::from(a) * u128::from(b)) >> w) as u64,
        Op::SMulHigh => ((i128::from(sa()) * i128::from(sb())) >> w) as u64,
        Op::UDiv => a.checked_div(b).unwrap_or(u64::MAX),
        Op::URem => a.checked_rem(b).unwrap_or(a),
        Op::SDiv if b == 0 => {
            if sa() < 0 {
                1
            } else {
                u64::MAX
            }
        }
        Op::SDiv => sa().wrapping_div(sb()) as u64,
        Op::SRem if b == 0 => a,
        Op::SRem => sa().wrapping_rem(sb()) as u64,
        Op::Shl => {
            if b >= w.into() {
                0
            } else {
                a << b
            }
        }
        Op::LShr => {
            if b >= w.into() {
                0
            } else {
                a >> b
            }
        }
        Op::AShr => (sa() >> b.min(63)) as u64,
        Op::Eq => (a == b).into(),
        Op::ULt => (a < b).into(),
        Op::SLt => (sa() < sb()).into(),
        Op::Ite => {
            if a == 1 {
                b
            } else {
                c
            }
        }
        Op::Extract => a >> node.imm,
        Op::Concat => a << width_of(1) | b,
        Op::ZExt => a,
        Op::SExt => sa() as u64,
        Op::Popcnt => a.count_ones().into(),
        Op::Ctz => u64::from(a.trailing_zeros()).min(first.into()),
        Op::Clz => u64::from(a.leading_zeros()) - (64 - u64::from(first)),
    };
    value & mask(w)
}
