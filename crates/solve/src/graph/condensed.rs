//! The graph in numbers: how many PM instructions that never ran can be reached from each node, and how far away the nearest is.
//!
//! The condensed graph depends on the code alone, so it is kept from path to path until new code is seen. A path changes only which PM
//! instructions never ran.

use std::collections::VecDeque;

use super::components::components;

/// PM instructions that never ran and are told apart, at most.
const MOST_ITEMS: usize = 4096;

/// A PM instruction, and the node that has it.
pub type Item = (u64, u32);

/// What follows each of some things, in one list.
#[derive(Debug, Default)]
struct Edges {
    first: Vec<u32>,
    to: Vec<u32>,
}

impl Edges {
    /// Of pairs (from, to), ascending; `count` things in all.
    fn new(pairs: &[(u32, u32)], count: usize) -> Edges {
        let mut edges = Edges { first: vec![0; count + 1], to: pairs.iter().map(|pair| pair.1).collect() };
        pairs.iter().for_each(|&(from, _)| edges.first[from as usize + 1] += 1);
        (0..count).for_each(|n| edges.first[n + 1] += edges.first[n]);
        edges
    }

    fn of(&self, from: u32) -> &[u32] {
        &self.to[self.first[from as usize] as usize..self.first[from as usize + 1] as usize]
    }
}

#[derive(Debug, Default)]
pub struct Condensed {
    /// Addresses, ascending.
    nodes: Vec<u64>,
    /// Of each node; what a component reaches has smaller numbers.
    component: Vec<u32>,
    components: usize,
    /// Between components.
    after: Edges,
    /// Between nodes, backwards.
    before: Edges,
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
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let mut own: Vec<Item> = Vec::new();
        for (number, &pc) in nodes.iter().enumerate() {
            let number = number as u32;
            let known = next(pc).filter_map(|pc| nodes.binary_search(&pc).ok());
            pairs.extend(known.map(|to| (number, to as u32)));
            own.extend(items(pc).into_iter().map(|pc| (pc, number)));
        }
        let count = nodes.len();
        let forwards = Edges::new(&pairs, count);
        let component = components(count, |node| forwards.of(node).iter().copied());
        let components = component.iter().max().map_or(0, |&last| last as usize + 1);
        let between = |&(from, to): &(u32, u32)| (component[from as usize], component[to as usize]);
        let mut condensed: Vec<(u32, u32)> = pairs.iter().map(between).filter(|(from, to)| from != to).collect();
        condensed.sort_unstable();
        condensed.dedup();
        let after = Edges::new(&condensed, components);
        pairs.iter_mut().for_each(|pair| *pair = (pair.1, pair.0));
        pairs.sort_unstable();
        own.sort_unstable();
        own.dedup();
        let before = Edges::new(&pairs, count);
        Condensed { nodes, component, components, after, before, items: own }
    }

    /// PM instructions that never ran.
    pub fn open(&self, is_executed: impl Fn(u64) -> bool) -> Vec<Item> {
        self.items.iter().copied().filter(|&(pc, _)| !is_executed(pc)).collect()
    }

    /// How many of `open` each component reaches, its own included.
    pub fn weights(&self, open: &[Item]) -> Vec<u32> {
        let mut places = Vec::with_capacity(open.len());
        let (mut last, mut place) = (None, 0);
        for &(pc, node) in open {
            place += usize::from(last.is_some_and(|last| last != pc));
            last = Some(pc);
            places.push((place, self.component[node as usize] as usize));
        }
        places.retain(|&(place, _)| place < MOST_ITEMS);
        let words = places.last().map_or(0, |&(place, _)| place / 64 + 1);
        let mut sets = vec![0u64; self.components * words];
        for (place, component) in places {
            sets[component * words + place / 64] |= 1 << (place % 64);
        }
        let mut weights = Vec::with_capacity(self.components);
        for component in 0..self.components {
            let (reached, own) = sets.split_at_mut(component * words);
            let own = &mut own[..words];
            for &to in self.after.of(component as u32) {
                let set = &reached[to as usize * words..][..words];
                own.iter_mut().zip(set).for_each(|(word, more)| *word |= more);
            }
            weights.push(own.iter().map(|word| word.count_ones()).sum());
        }
        weights
    }

    /// Steps from each node to the nearest of `open`; `u32::MAX`: it reaches none.
    pub fn distances(&self, open: &[Item]) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.nodes.len()];
        let mut todo = VecDeque::new();
        for &(_, node) in open {
            if std::mem::replace(&mut distances[node as usize], 0) != 0 {
                todo.push_back(node);
            }
        }
        while let Some(node) = todo.pop_front() {
            let distance = distances[node as usize] + 1;
            for &from in self.before.of(node) {
                if distances[from as usize] == u32::MAX {
                    distances[from as usize] = distance;
                    todo.push_back(from);
                }
            }
        }
        distances
    }

    /// The number of a node.
    pub fn node(&self, pc: u64) -> Option<usize> {
        self.nodes.binary_search(&pc).ok()
    }

    pub fn component(&self, node: usize) -> usize {
        self.component[node] as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    type Lists = BTreeMap<u64, Vec<u64>>;

    /// What a walk from `pc` finds: how many, and the nearest.
    fn walked(edges: &Lists, items: &Lists, pc: u64) -> (usize, u32) {
        let (mut seen, mut level, mut found) = (BTreeSet::new(), BTreeSet::from([pc]), BTreeSet::<u64>::new());
        let (mut nearest, mut distance) = (u32::MAX, 0);
        while !level.is_empty() {
            let own = level.iter().flat_map(|pc| &items[pc]).filter(|&&item| item % 3 != 0);
            found.extend(own);
            if !found.is_empty() {
                nearest = nearest.min(distance);
            }
            seen.extend(level.iter().copied());
            level = level.iter().flat_map(|pc| &edges[pc]).copied().filter(|pc| !seen.contains(pc)).collect();
            distance += 1;
        }
        (found.len(), nearest)
    }

    #[test]
    fn numbers_are_what_a_walk_from_each_node_finds() {
        let mut random = 1u64;
        let mut below = |most: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % most
        };
        for _ in 0..300 {
            let count = 1 + below(40);
            let (mut edges, mut items) = (Lists::new(), Lists::new());
            for pc in 0..count {
                let many = below(4);
                edges.insert(pc * 7, (0..many).map(|_| below(count) * 7).collect());
                let many = below(3);
                // Some belong to several nodes, as where one block begins inside of another.
                items.insert(pc * 7, (0..many).map(|_| below(200)).collect());
            }
            let nodes: Vec<u64> = edges.keys().rev().copied().collect();
            let condensed = Condensed::new(nodes.clone(), |pc| edges[&pc].clone().into_iter(), |pc| items[&pc].clone());
            let open = condensed.open(|item| item % 3 == 0);
            let (weights, distances) = (condensed.weights(&open), condensed.distances(&open));
            for pc in nodes {
                let node = condensed.node(pc).expect("it is one of them");
                let found = (weights[condensed.component(node)] as usize, distances[node]);
                assert_eq!(found, walked(&edges, &items, pc));
            }
        }
    }
}
