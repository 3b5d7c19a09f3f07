//! Static control flow, and how much PM code that never ran can be reached from each place (Agamotto, OSDI 2020, §4.3.1).
//!
//! **Deviations from the paper.** There is no pointer analysis: PM instructions are flushes, non-temporal stores, fences, and calls of
//! functions that can execute one (of PMDK, or with a flush inside); plain stores to PM are found only by executing them. Priorities
//! count only what was *not executed yet*. Code is read by following direct branches and calls, calls into other files as the loader
//! links them, jump tables, and the observed targets of indirect jumps and calls. An indirect call that never ran may go to any
//! function of its file that the file's data points to. Tables that are computed in another block than the jump, and pointers in data of files that are
//! not relocatable, are missed.

mod block;
mod components;
mod condensed;
mod linkage;

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::constant::Constants;
use crate::follow::Mapped;
use block::{Node, Through};
use condensed::{Condensed, Item};
use linkage::Linkage;

/// Instructions that are read at most.
const MOST_INSTRUCTIONS: usize = 3_000_000;
/// Added to where a file's code begins: the node that stands for any function that the file's data points to. No program lies there.
const ANYWHERE: u64 = 1 << 63;
/// Entries of a jump table, at most: how long it is, nobody says.
const MOST_ENTRIES: u64 = 256;

/// The code of a process as far as it can be followed.
#[derive(Debug, Default)]
pub struct Graph {
    files: Vec<(u64, Vec<u8>)>,
    mapped: Vec<Mapped>,
    constants: Constants,
    linkage: Linkage,
    nodes: FxHashMap<u64, Node>,
    /// Where indirect jumps and calls went, by their address.
    taken: FxHashMap<u64, Vec<u64>>,
    /// Of the code that is known, unless it is stale.
    condensed: Condensed,
    stale: bool,
    /// PM instructions that had not run when the weights were computed, the weights by component, and steps to the nearest by node.
    open: Vec<Item>,
    weights: Vec<u32>,
    steps: Vec<u32>,
    read: usize,
}

impl Graph {
    /// These files have code.
    pub fn map(&mut self, mapped: &[Mapped]) {
        let new: Vec<Mapped> = mapped.iter().filter(|one| !self.mapped.contains(one)).cloned().collect();
        for one in new {
            if !is_system(&one.path)
                && let Ok(bytes) = std::fs::read(&one.path)
            {
                let from = (one.offset as usize).min(bytes.len());
                let to = (from + one.len as usize).min(bytes.len());
                self.files.push((one.address, bytes[from..to].to_vec()));
                self.constants.mapped(one.address, &one.path, one.offset);
                let pointed = self.linkage.add(&one);
                self.nodes.insert(ANYWHERE + one.address, Node { successors: pointed, ..Node::default() });
                self.stale = true;
            }
            self.mapped.push(one);
        }
    }

    fn code(&self, pc: u64) -> Option<&[u8]> {
        let (start, bytes) =
            self.files.iter().find(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&pc))?;
        bytes.get((pc - start) as usize..)
    }

    /// Where an indirect call at `pc` may go for all that the files say.
    fn anywhere(&self, pc: u64) -> Option<u64> {
        let file = self.files.iter().find(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&pc))?;
        Some(ANYWHERE + file.0)
    }

    /// Runs took these ways from indirect jumps and calls, or can take them.
    pub fn take(&mut self, ways: &[(u64, u64)]) {
        for &(from, to) in ways {
            let known = self.taken.entry(from).or_default();
            if !known.contains(&to) {
                known.push(to);
                self.stale = true;
            }
        }
    }

    /// Follows the code from these places on.
    pub fn grow(&mut self, starts: impl IntoIterator<Item = u64>) {
        let mut todo: Vec<u64> = starts.into_iter().filter(|pc| !self.nodes.contains_key(pc)).collect();
        let pointed = self.nodes.iter().filter(|(pc, _)| **pc >= ANYWHERE);
        todo.extend(pointed.flat_map(|(_, node)| node.successors.iter().copied()));
        todo.extend(self.taken.values().flatten());
        while let Some(pc) = todo.pop() {
            if self.nodes.contains_key(&pc) || self.read > MOST_INSTRUCTIONS {
                continue;
            }
            let Some(code) = self.code(pc) else { continue };
            let (mut node, count) = block::read(code, pc);
            self.read += count;
            self.resolve(&mut node);
            todo.extend(node.successors.iter().chain(&node.calls).filter(|pc| !self.nodes.contains_key(pc)));
            self.nodes.insert(pc, node);
            self.stale = true;
        }
    }

    /// Where an indirect jump or call goes, as far as the files say it.
    fn resolve(&self, node: &mut Node) {
        let Some(indirect) = node.indirect else { return };
        match indirect.through {
            Through::Slot(slot) => {
                let Some(function) = self.linkage.function(slot) else { return };
                match indirect.is_call {
                    true => node.calls = Some(function),
                    false => node.successors.push(function),
                }
                node.indirect = None;
            }
            Through::Distances(table) => {
                let entries = (0..MOST_ENTRIES).map_while(|n| self.constants.read(table + n * 4, 4));
                let targets = entries.map(|distance| table.wrapping_add(distance as i32 as u64));
                node.successors.extend(targets.take_while(|&target| self.code(target).is_some()));
            }
            Through::Addresses(table) => {
                let entries = (0..MOST_ENTRIES).map_while(|n| self.constants.read(table.wrapping_add(n * 8), 8));
                node.successors.extend(entries.take_while(|&target| self.code(target).is_some()));
            }
            Through::Unknown => {}
        }
        node.successors.sort_unstable();
        node.successors.dedup();
    }

    /// What may follow a node, its callees included.
    fn next(&self, pc: u64) -> impl Iterator<Item = u64> + '_ {
        let node = self.nodes.get(&pc);
        let direct = node.into_iter().flat_map(|node| node.successors.iter().chain(&node.calls).copied());
        let indirect = node.and_then(|node| node.indirect);
        let taken = indirect.and_then(|indirect| self.taken.get(&indirect.at));
        let anywhere = indirect.filter(|indirect| indirect.is_call && taken.is_none());
        let anywhere = anywhere.and_then(|indirect| self.anywhere(indirect.at));
        let all = direct.chain(taken.into_iter().flatten().copied()).chain(anywhere);
        all.filter(|pc| self.nodes.contains_key(pc))
    }

    /// PM instructions that are known, executed or not.
    pub fn pm_instructions(&self) -> FxHashSet<u64> {
        self.nodes.values().flat_map(|node| node.pm.iter().copied()).collect()
    }

    /// Blocks from which a PM instruction is reached by direct ways, through the functions that they call, too.
    fn flushing(&self) -> FxHashSet<u64> {
        let mut before: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
        for (&pc, node) in self.nodes.iter().filter(|(pc, _)| **pc < ANYWHERE) {
            for &next in node.successors.iter().chain(&node.calls) {
                before.entry(next).or_default().push(pc);
            }
        }
        let mut todo: Vec<u64> = self.nodes.iter().filter(|(_, node)| !node.pm.is_empty()).map(|(&pc, _)| pc).collect();
        let mut flushing = FxHashSet::default();
        while let Some(pc) = todo.pop() {
            if flushing.insert(pc) {
                todo.extend(before.get(&pc).into_iter().flatten());
            }
        }
        flushing
    }

    /// Brings the weights up to date; `is_executed` says which instructions ran.
    pub fn weigh(&mut self, is_executed: impl Fn(u64) -> bool) {
        let is_new = std::mem::take(&mut self.stale);
        if is_new {
            let flushing = self.flushing();
            let items = |pc: u64| -> Vec<u64> {
                let node = &self.nodes[&pc];
                let call = node.calls.filter(|callee| flushing.contains(callee)).map(|_| node.call_at);
                node.pm.iter().copied().chain(call).collect()
            };
            self.condensed = Condensed::new(self.nodes.keys().copied().collect(), |pc| self.next(pc), items);
        }
        let open = self.condensed.open(is_executed);
        if is_new || open != self.open {
            self.weights = self.condensed.weights(&open);
            self.steps = self.condensed.distances(&open);
            self.open = open;
        }
    }

    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// How many PM instructions that never ran can be reached from `pc`.
    pub fn weight(&self, pc: u64) -> u64 {
        let node = self.condensed.node(pc);
        node.and_then(|node| self.weights.get(self.condensed.component(node))).map_or(0, |&weight| weight.into())
    }

    /// How many blocks lie between `pc` and the nearest PM instruction that never ran; none if no way leads to one.
    pub fn steps(&self, pc: u64) -> Option<u64> {
        let steps = self.condensed.node(pc).and_then(|node| self.steps.get(node));
        steps.copied().filter(|&steps| steps != u32::MAX).map(u64::from)
    }

    /// Blocks from `pc` to the nearest of `goals`; calls and what follows them count as one way. `None`: no way is known.
    pub fn distances(&self, goals: &[u64]) -> FxHashMap<u64, u64> {
        let mut before: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
        for &pc in self.nodes.keys() {
            for next in self.next(pc) {
                before.entry(next).or_default().push(pc);
            }
        }
        let mut distances = FxHashMap::default();
        let mut todo: VecDeque<u64> = self
            .nodes
            .iter()
            .filter(|(pc, node)| goals.iter().any(|goal| (**pc..node.end).contains(goal)))
            .map(|(&pc, _)| pc)
            .collect();
        for &pc in &todo {
            distances.insert(pc, 0);
        }
        while let Some(pc) = todo.pop_front() {
            let distance = distances[&pc];
            for &from in before.get(&pc).into_iter().flatten() {
                if let std::collections::hash_map::Entry::Vacant(entry) = distances.entry(from) {
                    entry.insert(distance + 1);
                    todo.push_back(from);
                }
            }
        }
        distances
    }
}

/// The C library and the loader: no PM code is there, but much code.
fn is_system(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["libc.so", "libc-", "ld-linux", "ld-2", "libm.so", "libpthread", "libdl.so", "libstdc++", "libgcc_s"]
        .iter()
        .any(|n| name.starts_with(n))
}
