//! The cheap stages: derive from its expression what a condition requires of single bytes, and try that.
//!
//! A comparison with a number is solved by propagating the number (or a neighbouring one) back to the input bytes, through
//! invertible operations ("input-to-state", REDQUEEN, NDSS 2019; here also through arithmetic). The result is only a
//! guess: the caller evaluates all conditions for it.

use rustc_hash::FxHashMap;

use crate::expr::{Arena, Expr, Op, mask, signed};

/// Bytes to be changed.
pub type Bytes = FxHashMap<u32, u8>;

/// Guesses at bytes for which `condition` holds, best first.
pub fn guesses(arena: &Arena, condition: Expr) -> Vec<Bytes> {
    let mut list = Vec::new();
    wish(arena, condition, true, &mut list, 6);
    list
}

fn attempt(arena: &Arena, expr: Expr, value: u64, list: &mut Vec<Bytes>) {
    let mut bytes = Bytes::default();
    if undo(arena, expr, value & mask(arena.width(expr)), &mut bytes, 400) && !list.contains(&bytes) {
        list.push(bytes);
    }
}

/// Ways to make a bit `wanted`.
fn wish(arena: &Arena, condition: Expr, wanted: bool, list: &mut Vec<Bytes>, depth: u32) {
    let node = arena.node(condition);
    let [a, b, _] = node.args;
    match node.op {
        Op::Not => wish(arena, a, !wanted, list, depth),
        Op::And | Op::Or if depth > 0 && node.width == 1 => {
            let both = (node.op == Op::And) == wanted;
            let (mut left, mut right) = (Vec::new(), Vec::new());
            let is = |e: Expr| (arena.value(e) == 1) == wanted;
            wish(arena, a, wanted, &mut left, depth - 1);
            wish(arena, b, wanted, &mut right, depth - 1);
            if both {
                // Sides that are right already may stay.
                if is(a) {
                    list.append(&mut right);
                } else if is(b) {
                    list.append(&mut left);
                } else if let (Some(x), Some(y)) = (left.first(), right.first()) {
                    let mut all = x.clone();
                    all.extend(y);
                    list.push(all);
                }
            } else {
                list.append(&mut left);
                list.append(&mut right);
            }
        }
        Op::Eq => {
            let (value_a, value_b) = (arena.value(a), arena.value(b));
            if wanted {
                attempt(arena, a, value_b, list);
                attempt(arena, b, value_a, list);
            } else {
                for value in [value_b.wrapping_add(1), value_b ^ 0x20, value_b.wrapping_sub(1), 0] {
                    attempt(arena, a, value, list);
                }
            }
        }
        Op::ULt | Op::SLt => {
            let (value_a, value_b) = (arena.value(a), arena.value(b));
            let width = arena.width(a);
            let (least, most) =
                if node.op == Op::ULt { (0, mask(width)) } else { (1u64 << (width - 1), mask(width) >> 1) };
            if wanted {
                for value in [value_b.wrapping_sub(1), least] {
                    attempt(arena, a, value, list);
                }
                for value in [value_a.wrapping_add(1), most] {
                    attempt(arena, b, value, list);
                }
            } else {
                for value in [value_b, value_b.wrapping_add(1), most] {
                    attempt(arena, a, value, list);
                }
                for value in [value_a, least] {
                    attempt(arena, b, value, list);
                }
            }
        }
        _ => attempt(arena, condition, wanted.into(), list),
    }
}

/// Puts `value` where `expr` comes from. False: it cannot be undone, or asks two things of one byte.
fn undo(arena: &Arena, expr: Expr, value: u64, bytes: &mut Bytes, depth: u32) -> bool {
    if depth == 0 {
        return false;
    }
    let node = arena.node(expr);
    let width = node.width;
    let [a, b, c] = node.args;
    let mut go = |e: Expr, value: u64| undo(arena, e, value & mask(arena.width(e)), bytes, depth - 1);
    let number = arena.number(b);
    match node.op {
        Op::Input => match bytes.insert(node.imm as u32, value as u8) {
            Some(before) => before == value as u8,
            None => true,
        },
        Op::Const => node.imm == value,
        Op::Not => go(a, !value),
        Op::Neg => go(a, value.wrapping_neg()),
        Op::ZExt => value <= mask(arena.width(a)) && go(a, value),
        Op::SExt => {
            let narrow = arena.width(a);
            signed(value & mask(narrow), narrow) as u64 & mask(width) == value && go(a, value)
        }
        Op::Concat => {
            let low = arena.width(b);
            go(a, value >> low) && go(b, value & mask(low))
        }
        Op::Extract => {
            let (whole, low) = (arena.value(a), node.imm);
            let hole = mask(width) << low;
            go(a, whole & !hole | value << low)
        }
        Op::Add => match number {
            Some(n) => go(a, value.wrapping_sub(n)),
            None => go(a, value.wrapping_sub(arena.value(b))),
        },
        Op::Sub if arena.number(a).is_some() => go(b, arena.value(a).wrapping_sub(value)),
        Op::Sub => go(a, value.wrapping_add(arena.value(b))),
        Op::Xor => go(a, value ^ arena.value(b)),
        Op::And if number.is_some() => {
            let ones = arena.value(b);
            value & !ones == 0 && go(a, arena.value(a) & !ones | value)
        }
        Op::Or if number.is_some() => {
            let ones = arena.value(b);
            value & ones == ones && go(a, arena.value(a) & ones | value & !ones)
        }
        Op::Mul => match number {
            Some(n) if n & 1 == 1 => go(a, value.wrapping_mul(inverse(n))),
            _ => false,
        },
        Op::UDiv => number.is_some_and(|n| value.checked_mul(n).is_some_and(|value| go(a, value))),
        Op::URem => number.is_some_and(|n| {
            n != 0 && value < n && {
                let whole = arena.value(a);
                go(a, whole - whole % n + value)
            }
        }),
        Op::LShr => number.is_some_and(|n| n < 64 && go(a, value << n | arena.value(a) & mask(n as u8))),
        Op::Ite => {
            if arena.value(a) == 1 {
                go(b, value)
            } else {
                go(c, value)
            }
        }
        Op::Eq if width == 1 && value == 1 => go(a, arena.value(b)),
        _ => false,
    }
}

/// Of an odd number, modulo 2^64.
fn inverse(n: u64) -> u64 {
    let mut x = n;
    for _ in 0..6 {
        x = x.wrapping_mul(2u64.wrapping_sub(n.wrapping_mul(x)));
    }
    x
}
