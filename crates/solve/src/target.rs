//! Where an indirect jump can go: the values that its expression can have.

use rustc_hash::FxHashMap;

use crate::expr::{Arena, Expr, Op};

/// Values that are looked at, at most.
const MOST: usize = 1024;

/// All values that `expr` can have, ascending, whatever the input is; some of them may not be possible on a given path. `None`: it is not made of a
/// choice between numbers, or of too many.
pub fn possible(arena: &Arena, expr: Expr) -> Option<Vec<u64>> {
    let mut known: FxHashMap<Expr, Vec<u64>> = FxHashMap::default();
    let mut stack = vec![expr];
    // Without recursion: a choice among 256 elements is 256 deep.
    while let Some(&top) = stack.last() {
        if known.contains_key(&top) {
            stack.pop();
            continue;
        }
        let node = arena.node(top);
        let parts: &[Expr] = match node.op {
            Op::Const => &[],
            Op::Ite => &node.args[1..],
            Op::Add | Op::Sub | Op::Shl | Op::Concat | Op::And | Op::Or | Op::Mul => &node.args[..2],
            Op::SExt | Op::ZExt | Op::Extract | Op::Neg | Op::Not => &node.args[..1],
            _ => return None,
        };
        let before = stack.len();
        stack.extend(parts.iter().filter(|part| !known.contains_key(part)));
        if stack.len() > before {
            continue;
        }
        let apply = |args: [u64; 3]| {
            crate::eval::apply(node, args, node.operands().first().map_or(0, |&a| arena.width(a)), |n| {
                arena.width(node.args[n])
            })
        };
        let mut values: Vec<u64> = match (node.op, parts) {
            (Op::Const, _) => vec![node.imm],
            (Op::Ite, [a, b]) => known[a].iter().chain(&known[b]).copied().collect(),
            (_, [a]) => known[a].iter().map(|&a| apply([a, 0, 0])).collect(),
            (_, [a, b]) => {
                if known[a].len() * known[b].len() > MOST {
                    return None;
                }
                known[a]
                    .iter()
                    .flat_map(|&a| known[b].iter().map(move |&b| (a, b)))
                    .map(|(a, b)| apply([a, b, 0]))
                    .collect()
            }
            _ => return None,
        };
        values.sort_unstable();
        values.dedup();
        if values.len() > MOST {
            return None;
        }
        known.insert(top, values);
        stack.pop();
    }
    known.remove(&expr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_its_targets_and_an_input_gives_none() {
        let mut arena = Arena::of(b"\x01");
        let byte = arena.input(0);
        let mut value = arena.constant(32, 40);
        for (index, entry) in [(1, 10), (2, 20), (3, 10)] {
            let index = arena.constant(8, index);
            let is = arena.eq(byte, index);
            let entry = arena.constant(32, entry);
            value = arena.ite(is, entry, value);
        }
        let wide = arena.sext(value, 64);
        let base = arena.constant(64, 1000);
        let target = arena.add(wide, base);
        assert_eq!(possible(&arena, target), Some(vec![1010, 1020, 1040]));
        assert_eq!(possible(&arena, byte), None);
    }
}
