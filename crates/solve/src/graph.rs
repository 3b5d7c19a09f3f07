//! Static control flow, and how much PM code that never ran can be reached from where (Agamotto, OSDI 2020, §4.3.1).
//!
//! **Deviations from the paper.** There is no pointer analysis: PM instructions are flushes, non-temporal stores, and calls of functions that
//! can flush (of PMDK, or with a flush inside); plain stores to PM are found out only by executing them. Priorities count what
//! was *not executed yet*. The priority of a branch includes what its callers can do after it has returned, so that a
//! comparison deep inside the C library counts for what the program does with its outcome. Code is read by following direct branches
//! and calls, jump tables as far as they were seen to be used; code that only a pointer reaches is found once it has run.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::follow::Mapped;

/// Instructions that are read at most.
const MOST_INSTRUCTIONS: usize = 3_000_000;

#[derive(Clone, Debug, Default)]
struct Node {
    successors: Vec<u64>,
    calls: Option<u64>,
    /// PM instructions in it, by address.
    pm: Vec<u64>,
    end: u64,
}

/// The code of a process as far as it can be followed.
#[derive(Debug, Default)]
pub struct Graph {
    files: Vec<(u64, Vec<u8>)>,
    mapped: Vec<Mapped>,
    nodes: FxHashMap<u64, Node>,
    weights: FxHashMap<u64, u64>,
    read: usize,
    stale: bool,
}

impl Graph {
    /// These files have code.
    pub fn map(&mut self, mapped: &[Mapped]) {
        for one in mapped {
            if self.mapped.contains(one) || is_system(&one.path) {
                continue;
            }
            self.mapped.push(one.clone());
            if let Ok(bytes) = std::fs::read(&one.path) {
                let from = (one.offset as usize).min(bytes.len());
                let to = (from + one.len as usize).min(bytes.len());
                self.files.push((one.address, bytes[from..to].to_vec()));
            }
        }
    }

    fn code(&self, pc: u64) -> Option<&[u8]> {
        let (start, bytes) =
            self.files.iter().find(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&pc))?;
        bytes.get((pc - start) as usize..)
    }

    /// Follows the code from these places on.
    pub fn grow(&mut self, starts: impl IntoIterator<Item = u64>) {
        let mut todo: Vec<u64> = starts.into_iter().filter(|pc| !self.nodes.contains_key(pc)).collect();
        while let Some(pc) = todo.pop() {
            if self.nodes.contains_key(&pc) || self.read > MOST_INSTRUCTIONS {
                continue;
            }
            let Some(node) = self.block(pc) else { continue };
            todo.extend(node.successors.iter().chain(&node.calls).filter(|pc| !self.nodes.contains_key(pc)));
            self.nodes.insert(pc, node);
            self.stale = true;
        }
    }

    fn block(&mut self, pc: u64) -> Option<Node> {
        let code = self.code(pc)?;
        let mut decoder = Decoder::with_ip(64, code, pc, DecoderOptions::NONE);
        let mut node = Node::default();
        let mut count = 0;
        while decoder.can_decode() {
            let i = decoder.decode();
            count += 1;
            if i.is_invalid() {
                break;
            }
            node.end = i.next_ip();
            if touches_pm(&i) {
                node.pm.push(i.ip());
            }
            match i.flow_control() {
                FlowControl::Next => {}
                FlowControl::UnconditionalBranch => {
                    node.successors.push(i.near_branch_target());
                    break;
                }
                FlowControl::ConditionalBranch => {
                    node.successors.extend([i.near_branch_target(), i.next_ip()]);
                    break;
                }
                FlowControl::Call if i.op0_kind() == OpKind::NearBranch64 => {
                    node.calls = Some(i.near_branch_target());
                    node.successors.push(i.next_ip());
                    break;
                }
                FlowControl::Call | FlowControl::IndirectCall => node.successors.push(i.next_ip()),
                FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => break,
                FlowControl::Interrupt | FlowControl::XbeginXabortXend => {}
            }
            if matches!(i.flow_control(), FlowControl::IndirectCall) {
                break;
            }
        }
        self.read += count;
        Some(node)
    }

    /// PM instructions that are known, executed or not.
    pub fn pm_instructions(&self) -> FxHashSet<u64> {
        self.nodes.values().flat_map(|node| node.pm.iter().copied()).collect()
    }

    /// Functions that can flush, directly or through others.
    fn flushing(&self) -> FxHashSet<u64> {
        let entries: FxHashSet<u64> = self.nodes.values().filter_map(|node| node.calls).collect();
        let mut flushing = FxHashSet::default();
        loop {
            let before = flushing.len();
            for &entry in &entries {
                if !flushing.contains(&entry) && self.function_flushes(entry, &flushing) {
                    flushing.insert(entry);
                }
            }
            if flushing.len() == before {
                return flushing;
            }
        }
    }

    fn function_flushes(&self, entry: u64, flushing: &FxHashSet<u64>) -> bool {
        let (mut seen, mut todo) = (FxHashSet::default(), vec![entry]);
        while let Some(pc) = todo.pop() {
            let Some(node) = self.nodes.get(&pc) else { continue };
            if !seen.insert(pc) {
                continue;
            }
            if !node.pm.is_empty() || node.calls.is_some_and(|callee| flushing.contains(&callee)) {
                return true;
            }
            todo.extend(&node.successors);
        }
        false
    }

    /// Works out the weights anew: `is_executed` says which blocks ran. Rounds of back-propagation, bounded: loops add nothing after that.
    pub fn weigh(&mut self, is_executed: impl Fn(u64) -> bool) {
        let flushing = self.flushing();
        let own: FxHashMap<u64, u64> = self
            .nodes
            .iter()
            .map(|(&pc, node)| {
                let calls = u64::from(node.calls.is_some_and(|callee| flushing.contains(&callee)));
                (pc, if is_executed(pc) { 0 } else { node.pm.len() as u64 + calls })
            })
            .collect();
        let order = self.components();
        self.weights.clear();
        // Components come with their successors first: one pass is enough.
        for component in order {
            let inside: FxHashSet<u64> = component.iter().copied().collect();
            let sum: u64 = component.iter().map(|pc| own[pc]).sum();
            let beyond = component
                .iter()
                .flat_map(|pc| self.nodes[pc].successors.iter().chain(&self.nodes[pc].calls))
                .filter(|pc| !inside.contains(pc))
                .filter_map(|pc| self.weights.get(pc))
                .max();
            let weight = sum + beyond.copied().unwrap_or(0);
            for pc in component {
                self.weights.insert(pc, weight);
            }
        }
        self.stale = false;
    }

    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// How much PM code that never ran can be reached from `pc`.
    pub fn weight(&self, pc: u64) -> u64 {
        self.weights.get(&pc).copied().unwrap_or(0)
    }

    /// Blocks from `pc` to the nearest of `goals`; calls and what follows them count as one way. `None`: no way is known.
    pub fn distances(&self, goals: &[u64]) -> FxHashMap<u64, u64> {
        let mut before: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
        for (&pc, node) in &self.nodes {
            for &next in node.successors.iter().chain(&node.calls) {
                before.entry(next).or_default().push(pc);
            }
        }
        let mut distances = FxHashMap::default();
        let mut todo: std::collections::VecDeque<u64> = self
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

    /// Strongly connected components, successors first (Tarjan, without recursion).
    fn components(&self) -> Vec<Vec<u64>> {
        let mut index: FxHashMap<u64, (u32, u32, bool)> = FxHashMap::default();
        let (mut next, mut stack, mut components) = (0, Vec::new(), Vec::new());
        let mut roots: Vec<u64> = self.nodes.keys().copied().collect();
        roots.sort_unstable();
        for root in roots {
            if index.contains_key(&root) {
                continue;
            }
            let mut work = vec![(root, 0usize)];
            while let Some(&mut (pc, ref mut at)) = work.last_mut() {
                if *at == 0 {
                    index.insert(pc, (next, next, true));
                    next += 1;
                    stack.push(pc);
                }
                let node = &self.nodes[&pc];
                let target = node.successors.iter().chain(&node.calls).nth(*at).copied();
                *at += 1;
                match target {
                    Some(target) if !self.nodes.contains_key(&target) => {}
                    Some(target) => match index.get(&target).copied() {
                        None => work.push((target, 0)),
                        Some((number, _, true)) => {
                            if let Some(entry) = index.get_mut(&pc) {
                                entry.1 = entry.1.min(number);
                            }
                        }
                        Some(_) => {}
                    },
                    None => {
                        work.pop();
                        let (number, low, _) = index[&pc];
                        if let Some(&(parent, _)) = work.last()
                            && let Some(entry) = index.get_mut(&parent)
                        {
                            entry.1 = entry.1.min(low);
                        }
                        if number == low {
                            let mut component = Vec::new();
                            while let Some(member) = stack.pop() {
                                if let Some(entry) = index.get_mut(&member) {
                                    entry.2 = false;
                                }
                                component.push(member);
                                if member == pc {
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
}

/// The C library and the loader: no PM code is there, but much code.
fn is_system(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["libc.so", "libc-", "ld-linux", "ld-2", "libm.so", "libpthread", "libdl.so", "libstdc++", "libgcc_s"]
        .iter()
        .any(|n| name.starts_with(n))
}

fn touches_pm(i: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        i.mnemonic(),
        M::Clwb
            | M::Clflush
            | M::Clflushopt
            | M::Movnti
            | M::Movntdq
            | M::Movntps
            | M::Movntpd
            | M::Vmovntdq
            | M::Vmovntps
            | M::Vmovntpd
            | M::Movdiri
            | M::Movdir64b
            | M::Sfence
    )
}
