//! The interval of values that an expression can have.

use crate::expr::{Arena, Expr, Op, mask};

/// Smallest and largest value without regard to what wraps around; `None`: nothing better than the width says.
fn bounds(arena: &Arena, expr: Expr, depth: u32) -> (u64, u64) {
    let node = arena.node(expr);
    let all = (0, mask(node.width));
    if depth == 0 {
        return all;
    }
    let of = |n: usize| bounds(arena, node.args[n], depth - 1);
    match node.op {
        Op::Const => (node.imm, node.imm),
        Op::ZExt => of(0),
        Op::Concat => {
            let shift = arena.width(node.args[1]);
            let ((low_a, high_a), (low_b, high_b)) = (of(0), of(1));
            (low_a << shift | low_b, high_a << shift | high_b)
        }
        Op::Add => {
            let ((low_a, high_a), (low_b, high_b)) = (of(0), of(1));
            match (low_a.checked_add(low_b), high_a.checked_add(high_b)) {
                (Some(low), Some(high)) if high <= all.1 => (low, high),
                _ => all,
            }
        }
        Op::Mul => {
            let ((low_a, high_a), (low_b, high_b)) = (of(0), of(1));
            match (low_a.checked_mul(low_b), high_a.checked_mul(high_b)) {
                (Some(low), Some(high)) if high <= all.1 => (low, high),
                _ => all,
            }
        }
        Op::And => (0, of(0).1.min(of(1).1)),
        Op::Ite => {
            let ((low_a, high_a), (low_b, high_b)) = (of(1), of(2));
            (low_a.min(low_b), high_a.max(high_b))
        }
        Op::URem => {
            let (_, most) = of(1);
            if most > 0 && of(1).0 > 0 { (0, (most - 1).min(of(0).1)) } else { all }
        }
        Op::UDiv => {
            let (least, _) = of(1);
            (0, of(0).1 / least.max(1))
        }
        Op::LShr => (0, of(0).1),
        Op::Popcnt | Op::Ctz | Op::Clz => (0, node.width.into()),
        _ => all,
    }
}

/// How many of the lowest bits are surely zero.
fn zeros(arena: &Arena, expr: Expr, depth: u32) -> u32 {
    let node = arena.node(expr);
    if depth == 0 {
        return 0;
    }
    let of = |n: usize| zeros(arena, node.args[n], depth - 1);
    match node.op {
        Op::Const if node.imm == 0 => node.width.into(),
        Op::Const => node.imm.trailing_zeros(),
        Op::ZExt | Op::SExt => of(0),
        Op::Concat => {
            let low = of(1);
            if low == u32::from(arena.width(node.args[1])) { low + of(0) } else { low }
        }
        Op::Add => of(0).min(of(1)),
        _ => 0,
    }
}

const DEEP: u32 = 24;

/// Lowest and highest address that `at` can be, and the step between. A sum with a base that wraps (negative indices) is looked at
/// as what the sum is beside its constant.
pub fn range(arena: &Arena, at: Expr, concrete: u64) -> (u64, u64, u64) {
    let node = arena.node(at);
    let (inner, base) = match node.op {
        Op::Add => match arena.number(node.args[1]) {
            Some(base) => (node.args[0], base),
            None => (at, 0),
        },
        _ => (at, 0),
    };
    let stride = 1u64 << zeros(arena, inner, DEEP).min(12);
    let node = arena.node(inner);
    // A signed index.
    if node.op == Op::SExt {
        let narrow = arena.width(node.args[0]);
        let half = 1u64 << (narrow - 1).min(62);
        let (low, high) = bounds(arena, node.args[0], DEEP);
        if high < half {
            return (base.wrapping_add(low), base.wrapping_add(high), stride);
        }
        return (base.wrapping_sub(half), base.wrapping_add(half - 1), stride);
    }
    let (low, high) = bounds(arena, inner, DEEP);
    let (low, high) = (base.wrapping_add(low), base.wrapping_add(high));
    if low <= concrete && concrete <= high { (low, high, stride) } else { (concrete, u64::MAX, 1) }
}
