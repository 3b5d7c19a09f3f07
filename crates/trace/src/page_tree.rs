//! Pages by their numbers, so that a copy costs the same however many there are.
//!
//! A tree with [`FAN`] children per node, as high as the largest number needs. Copies share it; a change copies the nodes on the way to its page, if
//! somebody else holds them too. What two copies do not share is found on the same way: where both have the same node, nothing below it differs. A
//! hash map of shared pages would need a step for each page in both cases, which is what a walk over the trace of a large pool would spend its time on.

use std::ops::Range;
use std::sync::Arc;

use crate::pages::PAGE;

const BITS: u32 = 6;
const FAN: usize = 1 << BITS;

pub(crate) type Page = [u8; PAGE];
type Children = [Option<Node>; FAN];

#[derive(Clone, Debug)]
enum Node {
    Inner(Arc<Children>),
    Page(Arc<Page>),
}

impl Node {
    fn is_same(&self, other: &Node) -> bool {
        match (self, other) {
            (Node::Inner(own), Node::Inner(others)) => Arc::ptr_eq(own, others),
            (Node::Page(own), Node::Page(others)) => Arc::ptr_eq(own, others),
            (Node::Inner(_), Node::Page(_)) | (Node::Page(_), Node::Inner(_)) => false,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PageTree {
    root: Option<Node>,
    /// Nodes between the root and a page, the root included; 0 if there is room for the page 0 only.
    height: u32,
}

impl PageTree {
    pub fn get(&self, number: u64) -> Option<&Page> {
        if !self.has_room(number) {
            return None;
        }
        let mut node = self.root.as_ref()?;
        for level in (0..self.height).rev() {
            let Node::Inner(children) = node else { return None };
            node = children[child(number, level)].as_ref()?;
        }
        match node {
            Node::Page(page) => Some(page),
            Node::Inner(_) => None,
        }
    }

    /// The page; a new one is zero.
    pub fn get_or_insert(&mut self, number: u64) -> &mut Page {
        while !self.has_room(number) {
            if let Some(root) = self.root.take() {
                let mut children: Children = [const { None }; FAN];
                children[0] = Some(root);
                self.root = Some(Node::Inner(Arc::new(children)));
            }
            self.height += 1;
        }
        let mut slot = &mut self.root;
        for level in (0..self.height).rev() {
            let node = slot.get_or_insert_with(|| Node::Inner(Arc::new([const { None }; FAN])));
            let Node::Inner(children) = node else { unreachable!("pages lie below the lowest level only") };
            slot = &mut Arc::make_mut(children)[child(number, level)];
        }
        match slot.get_or_insert_with(|| Node::Page(Arc::new([0; PAGE]))) {
            Node::Page(page) => Arc::make_mut(page),
            Node::Inner(_) => unreachable!("inner nodes lie above pages"),
        }
    }

    pub fn remove(&mut self, number: u64) {
        if self.get(number).is_some() {
            remove(&mut self.root, self.height, number);
        }
    }

    /// The numbers of the pages of a range, ascending.
    pub fn numbers(&self, range: Range<u64>) -> Vec<u64> {
        let mut found = Vec::new();
        numbers(self.root.as_ref(), self.height, 0, &range, &mut found);
        found
    }

    /// The numbers of the pages that the other tree does not share, ascending: with their contents in both. Costs what differs.
    pub fn differing<'t>(&'t self, other: &'t PageTree, each: &mut dyn FnMut(u64, Option<&'t Page>, Option<&'t Page>)) {
        let level = self.height.max(other.height);
        let (own, others) = (Part { node: self.root.as_ref(), level: self.height }, Part::of(other));
        differing(own, others, level, 0, each);
    }

    fn has_room(&self, number: u64) -> bool {
        let bits = self.height * BITS;
        bits >= u64::BITS || number >> bits == 0
    }
}

fn child(number: u64, level: u32) -> usize {
    (number >> (level * BITS)) as usize % FAN
}

/// Takes away a page that exists, and the nodes that are empty then.
fn remove(slot: &mut Option<Node>, height: u32, number: u64) {
    if let (Some(Node::Inner(children)), Some(level)) = (&mut *slot, height.checked_sub(1)) {
        let children = Arc::make_mut(children);
        remove(&mut children[child(number, level)], level, number);
        if children.iter().any(Option::is_some) {
            return;
        }
    }
    *slot = None;
}

fn numbers(node: Option<&Node>, height: u32, first: u64, range: &Range<u64>, found: &mut Vec<u64>) {
    match node {
        Some(Node::Page(_)) if range.contains(&first) => found.push(first),
        Some(Node::Inner(children)) => {
            let level = height - 1;
            for (place, node) in (0..).zip(children.iter()).filter(|(_, node)| node.is_some()) {
                let from = first + (place << (level * BITS));
                let last = from + ((1 << (level * BITS)) - 1);
                if from < range.end && last >= range.start {
                    numbers(node.as_ref(), level, from, range, found);
                }
            }
        }
        Some(Node::Page(_)) | None => {}
    }
}

/// A part of a tree, with the height of its root.
#[derive(Clone, Copy)]
struct Part<'t> {
    node: Option<&'t Node>,
    level: u32,
}

impl<'t> Part<'t> {
    fn of(tree: &'t PageTree) -> Part<'t> {
        Part { node: tree.root.as_ref(), level: tree.height }
    }

    /// What the child of a node at this height would be; a lower tree is the first child of a higher one.
    fn child(self, place: usize, level: u32) -> Part<'t> {
        if self.level <= level {
            return Part { node: self.node.filter(|_| place == 0), ..self };
        }
        let node = match self.node {
            Some(Node::Inner(children)) => children[place].as_ref(),
            Some(Node::Page(_)) | None => None,
        };
        Part { node, level }
    }

    fn page(self) -> Option<&'t Page> {
        match self.node {
            Some(Node::Page(page)) => Some(page),
            Some(Node::Inner(_)) | None => None,
        }
    }
}

fn differing<'t>(
    own: Part<'t>,
    others: Part<'t>,
    height: u32,
    first: u64,
    each: &mut dyn FnMut(u64, Option<&'t Page>, Option<&'t Page>),
) {
    match (own.node, others.node) {
        (None, None) => return,
        (Some(node), Some(other)) if own.level == others.level && node.is_same(other) => return,
        _ => {}
    }
    let Some(level) = height.checked_sub(1) else { return each(first, own.page(), others.page()) };
    for place in 0..FAN {
        let from = first + ((place as u64) << (level * BITS));
        differing(own.child(place, level), others.child(place, level), level, from, each);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn content(tree: &PageTree) -> BTreeMap<u64, u8> {
        tree.numbers(0..u64::MAX).into_iter().map(|number| (number, tree.get(number).unwrap()[7])).collect()
    }

    /// Numbers near each other and far apart, so that trees of all heights occur.
    fn number(random: u64) -> u64 {
        (random >> 6) & ((1 << (random % 52 + 1)) - 1)
    }

    #[test]
    fn copies_are_independent_and_differ_where_a_map_of_pages_does() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut trees: Vec<(PageTree, BTreeMap<u64, u8>)> = vec![Default::default()];
        for round in 0..6000 {
            let at = random() as usize % trees.len();
            if round % 50 == 0 && trees.len() < 12 {
                let copy = trees[at].clone();
                trees.push(copy);
            } else if round % 400 == 0 {
                trees.swap_remove(at);
                trees.push(trees[0].clone());
            }
            let (tree, map) = &mut trees[at % 8];
            let page = number(random());
            if random().is_multiple_of(4) {
                let known: Vec<u64> = map.keys().copied().collect();
                let page = if known.is_empty() { page } else { known[random() as usize % known.len()] };
                tree.remove(page);
                map.remove(&page);
            } else {
                let value = random() as u8;
                tree.get_or_insert(page)[7] = value;
                map.insert(page, value);
            }
            assert_eq!(tree.get(page).map(|page| page[7]), map.get(&page).copied());
            if round % 100 == 0 {
                check(&trees);
            }
        }
        check(&trees);
    }

    fn check(trees: &[(PageTree, BTreeMap<u64, u8>)]) {
        for (tree, map) in trees {
            assert_eq!(content(tree), *map);
            let middle = map.keys().nth(map.len() / 2).copied().unwrap_or_default();
            let upper: Vec<u64> = map.range(middle..).map(|(number, _)| *number).collect();
            assert_eq!(tree.numbers(middle..u64::MAX), upper);
        }
        for ((one, first), (two, second)) in trees.iter().zip(&trees[1..]) {
            let mut found = BTreeMap::new();
            one.differing(two, &mut |number, own, others| {
                let own = own.map(|page| page[7]);
                assert!(found.last_key_value().is_none_or(|(last, _)| *last < number), "ascending");
                found.insert(number, (own, others.map(|page| page[7])));
            });
            for (number, (own, others)) in &found {
                assert_eq!((*own, *others), (first.get(number).copied(), second.get(number).copied()));
            }
            let differs = |number: &&u64| first.get(number) != second.get(number);
            for number in first.keys().chain(second.keys()).filter(differs) {
                assert!(found.contains_key(number), "{number}");
            }
        }
    }

    #[test]
    fn what_copies_share_is_not_looked_at() {
        let mut tree = PageTree::default();
        for number in 0..10_000 {
            tree.get_or_insert(number * 3)[0] = 1;
        }
        let before = tree.clone();
        tree.get_or_insert(300)[0] = 2;
        tree.get_or_insert(1 << 40)[0] = 2;
        tree.remove(6);
        let mut found = Vec::new();
        before.differing(&tree, &mut |number, own, others| found.push((number, own.is_some(), others.is_some())));
        assert_eq!(found, [(6, true, false), (300, true, true), (1 << 40, false, true)]);
    }

    #[test]
    fn an_emptied_tree_has_no_nodes() {
        let mut tree = PageTree::default();
        for number in [0, 5, 1 << 51] {
            tree.get_or_insert(number);
        }
        for number in [5, 0, 1 << 51] {
            tree.remove(number);
        }
        assert!(tree.root.is_none());
    }
}
