//! Strongly connected components.

use rustc_hash::FxHashMap;

/// Components of the graph with these nodes, in which `next` gives what follows a node: those that are reached come before those that reach
/// them (Tarjan, without recursion). The order depends on `nodes` alone.
pub fn components<I: Iterator<Item = u64>>(nodes: &[u64], next: impl Fn(u64) -> I) -> Vec<Vec<u64>> {
    let mut index: FxHashMap<u64, (u32, u32, bool)> = FxHashMap::default();
    let (mut count, mut stack, mut components) = (0, Vec::new(), Vec::new());
    for &root in nodes {
        if index.contains_key(&root) {
            continue;
        }
        index.insert(root, (count, count, true));
        count += 1;
        stack.push(root);
        let mut work = vec![(root, next(root))];
        while let Some((node, rest)) = work.last_mut() {
            let node = *node;
            match rest.next() {
                Some(target) => match index.get(&target).copied() {
                    None => {
                        index.insert(target, (count, count, true));
                        count += 1;
                        stack.push(target);
                        work.push((target, next(target)));
                    }
                    Some((number, _, true)) => lower(&mut index, node, number),
                    Some(_) => {}
                },
                None => {
                    work.pop();
                    let (number, low, _) = index[&node];
                    if let Some((parent, _)) = work.last() {
                        lower(&mut index, *parent, low);
                    }
                    if number == low {
                        let mut component = Vec::new();
                        while let Some(member) = stack.pop() {
                            if let Some(entry) = index.get_mut(&member) {
                                entry.2 = false;
                            }
                            component.push(member);
                            if member == node {
                                break;
                            }
                        }
                        components.push(component);
                    }
                }
            }
        }
    }
    components
}

fn lower(index: &mut FxHashMap<u64, (u32, u32, bool)>, node: u64, to: u32) {
    if let Some(entry) = index.get_mut(&node) {
        entry.1 = entry.1.min(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_one_component_and_comes_after_what_it_leads_to() {
        let next = |node: u64| -> std::vec::IntoIter<u64> {
            match node {
                1 => vec![2],
                2 => vec![3, 4],
                3 => vec![1],
                _ => vec![],
            }
            .into_iter()
        };
        let mut found = components(&[1, 2, 3, 4, 5], next);
        found.iter_mut().for_each(|component| component.sort_unstable());
        assert_eq!(found, [vec![4], vec![1, 2, 3], vec![5]]);
    }
}
