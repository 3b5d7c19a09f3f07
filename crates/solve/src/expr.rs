//! Bit-vector expressions over the bytes of an input.
//!
//! Expressions are interned in an [`Arena`]: equal expressions have equal [`Expr`]s. They are simplified as they are
//! built ([`crate::simplify`]), so that a value that was only moved, split and reassembled is the bytes that it came from.
//! Every expression has 1 to 64 bits. Operations have the meaning of SMT-LIB's bit vectors: shifts by the width or more give zero (the sign for
//! [`Op::AShr`]), division by zero gives all ones, and its remainder is the dividend.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use crate::eval::apply;
use crate::support::{SupportId, Supports};

/// An expression of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr(pub(crate) u32);

/// What an expression does with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// The number in `imm`.
    Const,
    /// Byte `imm` of the input.
    Input,
    Not,
    Neg,
    And,
    Or,
    Xor,
    Add,
    Sub,
    Mul,
    /// Upper half of the product.
    UMulHigh,
    SMulHigh,
    UDiv,
    URem,
    SDiv,
    SRem,
    Shl,
    LShr,
    AShr,
    /// One bit.
    Eq,
    ULt,
    SLt,
    /// The first operand has one bit and chooses between the others.
    Ite,
    /// Bits from `imm` on.
    Extract,
    /// The first operand is the upper part.
    Concat,
    ZExt,
    SExt,
    /// How many bits are set; how many are clear below the lowest (above the highest) that is set, the width for zero.
    Popcnt,
    Ctz,
    Clz,
}

/// An operation with its operands; unused ones are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub op: Op,
    pub width: u8,
    pub args: [Expr; 3],
    pub imm: u64,
}

impl Node {
    /// How many operands there are.
    pub fn arity(&self) -> usize {
        match self.op {
            Op::Const | Op::Input => 0,
            Op::Not | Op::Neg | Op::Extract | Op::ZExt | Op::SExt | Op::Popcnt | Op::Ctz | Op::Clz => 1,
            Op::Ite => 3,
            _ => 2,
        }
    }

    pub fn operands(&self) -> &[Expr] {
        &self.args[..self.arity()]
    }
}

/// All expressions of one run.
#[derive(Clone, Debug, Default)]
pub struct Arena {
    nodes: Vec<Node>,
    /// How long the longest way down to an input is.
    depths: Vec<u32>,
    supports: Vec<SupportId>,
    known: FxHashMap<Node, Expr>,
    sets: Supports,
    /// The input of the run, and what every expression is for it.
    input: Box<[u8]>,
    values: Vec<u64>,
    /// Equal for equal expressions of any arena.
    structures: Vec<u64>,
}

/// The lowest `width` bits.
pub const fn mask(width: u8) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// `value` of `width` bits, extended by its sign.
pub const fn signed(value: u64, width: u8) -> i64 {
    let shift = 64 - width as u32;
    ((value << shift) as i64) >> shift
}

pub(crate) const NO_ARGS: [Expr; 3] = [Expr(0); 3];

impl Arena {
    /// For a run with this input; bytes beyond its end are zero.
    pub fn of(input: &[u8]) -> Arena {
        Arena { input: input.into(), ..Arena::default() }
    }

    /// What the expression is in the run that it was made for.
    #[inline]
    pub fn value(&self, expr: Expr) -> u64 {
        self.values[expr.0 as usize]
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    #[inline]
    pub fn node(&self, expr: Expr) -> &Node {
        &self.nodes[expr.0 as usize]
    }

    pub fn width(&self, expr: Expr) -> u8 {
        self.node(expr).width
    }

    /// A number for its structure: the same in every arena.
    pub fn structure(&self, expr: Expr) -> u64 {
        self.structures[expr.0 as usize]
    }

    pub fn depth(&self, expr: Expr) -> u32 {
        self.depths[expr.0 as usize]
    }

    /// The bytes of the input that it depends on, ascending.
    pub fn support(&self, expr: Expr) -> &[u32] {
        self.sets.get(self.supports[expr.0 as usize])
    }

    /// If it is a number.
    #[inline]
    pub fn number(&self, expr: Expr) -> Option<u64> {
        let node = self.node(expr);
        (node.op == Op::Const).then_some(node.imm)
    }

    pub(crate) fn make(&mut self, node: Node) -> Expr {
        if let Some(&known) = self.known.get(&node) {
            return known;
        }
        let expr = Expr(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        let mut support = match node.op {
            Op::Input => self.sets.single(node.imm as u32),
            _ => SupportId::EMPTY,
        };
        let mut depth = 0;
        for operand in node.operands() {
            support = self.sets.union(support, self.supports[operand.0 as usize]);
            depth = depth.max(self.depths[operand.0 as usize] + 1);
        }
        let value = match node.op {
            Op::Input => self.input.get(node.imm as usize).copied().unwrap_or(0).into(),
            _ => {
                let args = node.args.map(|arg| self.values.get(arg.0 as usize).copied().unwrap_or(0));
                let width = |n: usize| self.nodes.get(node.args[n].0 as usize).map_or(0, |node| node.width);
                apply(&node, args, width(0), width)
            }
        };
        self.values.push(value);
        let mut structure = FxHasher::default();
        (node.op, node.width, node.imm).hash(&mut structure);
        for operand in node.operands() {
            self.structures[operand.0 as usize].hash(&mut structure);
        }
        self.structures.push(structure.finish());
        self.nodes.push(node);
        self.depths.push(depth);
        self.supports.push(support);
        self.known.insert(node, expr);
        expr
    }

    pub fn constant(&mut self, width: u8, value: u64) -> Expr {
        self.make(Node { op: Op::Const, width, args: NO_ARGS, imm: value & mask(width) })
    }

    pub fn input(&mut self, index: u32) -> Expr {
        self.make(Node { op: Op::Input, width: 8, args: NO_ARGS, imm: index.into() })
    }

    pub fn truth(&mut self, value: bool) -> Expr {
        self.constant(1, value.into())
    }
}
