//! Strongly connected components.

/// Component of each node of a graph, in which `next` gives what follows a node: components that are reached have smaller numbers than those that
/// reach them (Tarjan, without recursion).
pub fn components<I: Iterator<Item = u32>>(count: usize, next: impl Fn(u32) -> I) -> Vec<u32> {
    const NEW: u32 = u32::MAX;
    let mut order = vec![NEW; count];
    let mut low = vec![NEW; count];
    let mut component = vec![NEW; count];
    let (mut seen, mut found, mut stack) = (0, 0, Vec::new());
    for root in 0..count as u32 {
        if order[root as usize] != NEW {
            continue;
        }
        let mut work = Vec::new();
        let mut entered = Some(root);
        loop {
            if let Some(node) = entered.take() {
                (order[node as usize], low[node as usize]) = (seen, seen);
                seen += 1;
                stack.push(node);
                work.push((node, next(node)));
            }
            let Some((node, rest)) = work.last_mut() else { break };
            let node = *node as usize;
            if let Some(target) = rest.next() {
                let at = target as usize;
                if order[at] == NEW {
                    entered = Some(target);
                } else if component[at] == NEW {
                    low[node] = low[node].min(order[at]);
                }
                continue;
            }
            work.pop();
            if let Some(&(parent, _)) = work.last() {
                low[parent as usize] = low[parent as usize].min(low[node]);
            }
            if low[node] == order[node] {
                while let Some(member) = stack.pop() {
                    component[member as usize] = found;
                    if member as usize == node {
                        break;
                    }
                }
                found += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_one_component_and_comes_after_what_it_leads_to() {
        let next = |node: u32| -> std::vec::IntoIter<u32> {
            match node {
                0 => vec![1],
                1 => vec![2, 3],
                2 => vec![0],
                _ => vec![],
            }
            .into_iter()
        };
        assert_eq!(components(5, next), [1, 1, 1, 0, 2]);
    }
}
