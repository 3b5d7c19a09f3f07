//! The graph without its loops, and how many PM instructions are reached from each of its nodes.
//!
//! It depends on the code alone, and so serves one path after the other until code is seen for the first time. What a path changes is only which PM
//! instructions never ran.

use rustc_hash::FxHashMap;

use super::components::components;

/// PM instructions that never ran and are told apart, at most.
const MOST_ITEMS: usize = 4096;

/// A PM instruction, and the component that has it.
pub type Item = (u64, u32);

#[derive(Debug, Default)]
pub struct Condensed {
    component: FxHashMap<u64, u32>,
    /// What component n reaches at once is `next[first[n]..first[n + 1]]`; all of it has smaller numbers.
    first: Vec<u32>,
    next: Vec<u32>,
    items: Vec<Item>,
}

impl Condensed {
    /// Of `nodes`, in any order; `next` gives what follows a node, and `items` its PM instructions.
    pub fn new<I: Iterator<Item = u64>>(
        mut nodes: Vec<u64>,
        next: impl Fn(u64) -> I,
        items: impl Fn(u64) -> Vec<u64>,
    ) -> Condensed {
        nodes.sort_unstable();
        let number: FxHashMap<u64, u32> = nodes.iter().enumerate().map(|(number, &pc)| (pc, number as u32)).collect();
        let (mut first, mut edges) = (vec![0], Vec::new());
        for &pc in &nodes {
            edges.extend(next(pc).filter_map(|pc| number.get(&pc)));
            first.push(edges.len() as u32);
        }
        let after = |node: u32| edges[first[node as usize] as usize..first[node as usize + 1] as usize].iter().copied();
        let of = components(nodes.len(), after);
        let count = of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut between: Vec<(u32, u32)> = Vec::with_capacity(edges.len());
        for node in 0..nodes.len() as u32 {
            let from = of[node as usize];
            between.extend(after(node).map(|to| (from, of[to as usize])).filter(|(from, to)| from != to));
        }
        between.sort_unstable();
        between.dedup();
        let mut condensed = Condensed { first: vec![0; count + 1], ..Condensed::default() };
        for &(from, to) in &between {
            condensed.first[from as usize + 1] += 1;
            condensed.next.push(to);
        }
        for n in 0..count {
            condensed.first[n + 1] += condensed.first[n];
        }
        let own =
            nodes.iter().zip(&of).flat_map(|(&pc, &component)| items(pc).into_iter().map(move |pc| (pc, component)));
        condensed.items = own.collect();
        condensed.items.sort_unstable();
        condensed.items.dedup();
        condensed.component = nodes.into_iter().zip(of).collect();
        condensed
    }

    /// PM instructions that never ran.
    pub fn open(&self, is_executed: impl Fn(u64) -> bool) -> Vec<Item> {
        self.items.iter().copied().filter(|&(pc, _)| !is_executed(pc)).collect()
    }

    /// How many of `open` each component reaches, its own included.
    pub fn weights(&self, open: &[Item]) -> Vec<u32> {
        let count = self.first.len().saturating_sub(1);
        let mut places = Vec::with_capacity(open.len());
        let (mut last, mut place) = (None, 0);
        for &(pc, component) in open {
            place += usize::from(last.is_some_and(|last| last != pc));
            last = Some(pc);
            places.push((place, component as usize));
        }
        places.retain(|&(place, _)| place < MOST_ITEMS);
        let words = places.last().map_or(0, |&(place, _)| place / 64 + 1);
        let mut sets = vec![0u64; count * words];
        for (place, component) in places {
            sets[component * words + place / 64] |= 1 << (place % 64);
        }
        let mut weights = Vec::with_capacity(count);
        for component in 0..count {
            let (reached, own) = sets.split_at_mut(component * words);
            let own = &mut own[..words];
            for &to in &self.next[self.first[component] as usize..self.first[component + 1] as usize] {
                let set = &reached[to as usize * words..][..words];
                own.iter_mut().zip(set).for_each(|(word, more)| *word |= more);
            }
            weights.push(own.iter().map(|word| word.count_ones()).sum());
        }
        weights
    }

    pub fn component(&self, pc: u64) -> Option<usize> {
        self.component.get(&pc).map(|&number| number as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What a walk from `pc` finds.
    fn walked(edges: &FxHashMap<u64, Vec<u64>>, items: &FxHashMap<u64, Vec<u64>>, pc: u64) -> usize {
        let (mut seen, mut todo, mut found) = (BTreeSet::new(), vec![pc], BTreeSet::<u64>::new());
        while let Some(pc) = todo.pop() {
            if seen.insert(pc) {
                found.extend(items[&pc].iter().filter(|&&item| item % 3 != 0));
                todo.extend(&edges[&pc]);
            }
        }
        found.len()
    }

    #[test]
    fn weights_are_what_a_walk_from_each_node_finds() {
        let mut random = 1u64;
        let mut below = |most: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % most
        };
        for _ in 0..300 {
            let count = 1 + below(40);
            let (mut edges, mut items) = (FxHashMap::default(), FxHashMap::default());
            for pc in 0..count {
                let many = below(4);
                edges.insert(pc * 7, (0..many).map(|_| below(count) * 7).collect::<Vec<u64>>());
                let many = below(3);
                // Some belong to several nodes, as where one block begins inside of another.
                items.insert(pc * 7, (0..many).map(|_| below(200)).collect::<Vec<u64>>());
            }
            let nodes: Vec<u64> = edges.keys().copied().collect();
            let condensed = Condensed::new(nodes.clone(), |pc| edges[&pc].clone().into_iter(), |pc| items[&pc].clone());
            let weights = condensed.weights(&condensed.open(|item| item % 3 == 0));
            for pc in nodes {
                let weight = condensed.component(pc).map(|component| weights[component] as usize);
                assert_eq!(weight, Some(walked(&edges, &items, pc)));
            }
        }
    }
}
