//! Where the two ways of a branch meet again: immediate post-dominators, worked out when they are first asked for.
//!
//! The graph of a branch is what can be reached from it inside its function: static control flow, with the targets that were
//! observed for indirect jumps. Calls are stepped over, returns and traps are exits. The graph holds everything that any of its
//! nodes can reach, so one computation serves all branches in it.
//!
//! What this can get wrong: code that is neither executed nor readable counts as an exit, and so does a function that calls
//! one that never returns, then goes on with what follows in memory; both make regions too long (more conditions, never
//! fewer). An indirect jump of which one target was seen counts as leading out, too; one with a target that is seen later makes regions
//! end too early until then.
//!
//! Source: K. D. Cooper, T. J. Harvey, K. Kennedy, "A Simple, Fast Dominance Algorithm" (2001), on the reversed graph.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::code::{Code, LONGEST};

/// Instructions of a graph, at most; what lies beyond counts as an exit.
const MOST_INSTRUCTIONS: usize = 1 << 14;

/// Where the ways of a branch meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meet {
    At(u64),
    /// Nowhere in the function.
    Exit,
}

#[derive(Debug, Default)]
pub struct PostDominators {
    known: FxHashMap<u64, Meet>,
    /// Observed targets of indirect jumps.
    targets: FxHashMap<u64, Vec<u64>>,
    /// The branches whose graphs have this indirect jump in them.
    depends: FxHashMap<u64, Vec<u64>>,
    generation: u32,
}

impl PostDominators {
    /// Changes whenever an answer may have changed.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// An indirect jump went there.
    pub fn jumped(&mut self, from: u64, to: u64) {
        let targets = self.targets.entry(from).or_default();
        if targets.contains(&to) {
            return;
        }
        targets.push(to);
        for branch in self.depends.remove(&from).unwrap_or_default() {
            self.known.remove(&branch);
        }
        self.generation += 1;
    }

    /// Where the ways of the branch at `pc` meet.
    pub fn of(&mut self, pc: u64, code: &mut Code) -> Meet {
        if let Some(&known) = self.known.get(&pc) {
            return known;
        }
        let graph = Graph::reached_from(pc, code, &self.targets);
        let meets = graph.meets();
        for &jump in &graph.indirect {
            let depends = self.depends.entry(jump).or_default();
            depends.push(pc);
            depends.extend(meets.iter().map(|&(branch, _)| branch));
        }
        self.known.extend(meets);
        *self.known.entry(pc).or_insert(Meet::Exit)
    }
}

/// Where one instruction leads.
#[derive(Clone, Debug)]
enum Successors {
    Next(u64),
    /// To all of these; none: out of the function.
    Jump(Vec<u64>),
}

struct Graph {
    steps: FxHashMap<u64, Successors>,
    /// Where blocks begin, in order of discovery; the first is the branch.
    leaders: Vec<u64>,
    indirect: Vec<u64>,
}

impl Graph {
    fn reached_from(pc: u64, code: &mut Code, targets: &FxHashMap<u64, Vec<u64>>) -> Graph {
        let mut graph = Graph { steps: FxHashMap::default(), leaders: vec![pc], indirect: Vec::new() };
        let mut is_leader: FxHashSet<u64> = FxHashSet::from_iter([pc]);
        let mut done = 0;
        while done < graph.leaders.len() {
            let mut at = graph.leaders[done];
            done += 1;
            while !graph.steps.contains_key(&at) && graph.steps.len() < MOST_INSTRUCTIONS {
                let step = step(at, code, targets, &mut graph.indirect);
                let next = match &step {
                    Successors::Next(next) => Some(*next),
                    Successors::Jump(ways) => {
                        graph.leaders.extend(ways.iter().filter(|&&way| is_leader.insert(way)));
                        None
                    }
                };
                graph.steps.insert(at, step);
                match next {
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
        graph
    }

    /// All branches of the graph and where their ways meet.
    fn meets(&self) -> Vec<(u64, Meet)> {
        let numbers: FxHashMap<u64, usize> =
            self.leaders.iter().enumerate().map(|(number, &pc)| (pc, number + 1)).collect();
        // Node 0 is the exit.
        let mut ways: Vec<Vec<usize>> = vec![Vec::new(); self.leaders.len() + 1];
        let mut branches = Vec::new();
        for (&leader, &number) in &numbers {
            let mut at = leader;
            ways[number] = loop {
                match self.steps.get(&at) {
                    None => break vec![0],
                    Some(Successors::Next(next)) => match numbers.get(next) {
                        Some(&other) => break vec![other],
                        None => at = *next,
                    },
                    Some(Successors::Jump(to)) => {
                        if to.len() > 1 {
                            branches.push((at, number));
                        }
                        break if to.is_empty() { vec![0] } else { to.iter().map(|way| numbers[way]).collect() };
                    }
                }
            };
        }
        let parents = dominators_of_reversed(&ways);
        let meet = |number: usize| match parents[number] {
            Some(parent) if parent != 0 => Meet::At(self.leaders[parent - 1]),
            _ => Meet::Exit,
        };
        branches.into_iter().map(|(pc, number)| (pc, meet(number))).collect()
    }
}

fn step(pc: u64, code: &mut Code, targets: &FxHashMap<u64, Vec<u64>>, indirect: &mut Vec<u64>) -> Successors {
    let mut bytes = [0; LONGEST];
    let known = code.at(pc, &mut bytes);
    let mut instruction = Instruction::default();
    Decoder::with_ip(64, &bytes[..known], pc, DecoderOptions::NONE).decode_out(&mut instruction);
    if instruction.is_invalid() {
        return Successors::Jump(Vec::new());
    }
    let next = instruction.next_ip();
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall | FlowControl::XbeginXabortXend => {
            if matches!(instruction.mnemonic(), Mnemonic::Hlt) {
                Successors::Jump(Vec::new())
            } else {
                Successors::Next(next)
            }
        }
        FlowControl::UnconditionalBranch => Successors::Jump(vec![instruction.near_branch_target()]),
        FlowControl::ConditionalBranch => Successors::Jump(vec![instruction.near_branch_target(), next]),
        FlowControl::IndirectBranch => {
            indirect.push(pc);
            Successors::Jump(targets.get(&pc).cloned().unwrap_or_default())
        }
        FlowControl::Return | FlowControl::Interrupt | FlowControl::Exception => Successors::Jump(Vec::new()),
    }
}

/// The immediate post-dominator of each node; none for those that never reach the exit, node 0.
fn dominators_of_reversed(ways: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut back: Vec<Vec<usize>> = vec![Vec::new(); ways.len()];
    for (from, to) in ways.iter().enumerate() {
        for &to in to {
            back[to].push(from);
        }
    }
    for sources in &mut back {
        sources.sort_unstable();
    }
    let order = postorder(&back);
    let mut place = vec![usize::MAX; ways.len()];
    for (at, &node) in order.iter().enumerate() {
        place[node] = at;
    }
    let mut parents: Vec<Option<usize>> = vec![None; ways.len()];
    parents[0] = Some(0);
    let mut changed = true;
    while changed {
        changed = false;
        for &node in order.iter().rev().filter(|&&node| node != 0) {
            let mut parent = None;
            for &way in ways[node].iter().filter(|&&way| parents[way].is_some()) {
                parent = Some(parent.map_or(way, |other| meet(&parents, &place, other, way)));
            }
            if parents[node] != parent {
                parents[node] = parent;
                changed = true;
            }
        }
    }
    parents
}

fn meet(parents: &[Option<usize>], place: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        let lower = if place[a] < place[b] { &mut a } else { &mut b };
        *lower = parents[*lower].expect("nodes on the way to the exit have a parent");
    }
    a
}

fn postorder(edges: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(edges.len());
    let mut seen = vec![false; edges.len()];
    let mut stack = vec![(0, 0)];
    seen[0] = true;
    while let Some((node, at)) = stack.last_mut() {
        match edges[*node].get(*at) {
            Some(&next) => {
                *at += 1;
                if !seen[next] {
                    seen[next] = true;
                    stack.push((next, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use iced_x86::code_asm::{CodeAssembler, eax, ebx, ecx, rax};

    use super::*;

    fn known(assembler: &mut CodeAssembler) -> Code {
        let mut code = Code::default();
        code.define(0x1000, &assembler.assemble(0x1000).unwrap());
        code
    }

    /// The addresses of the conditional and indirect jumps.
    fn branches(code: &mut Code) -> Vec<Instruction> {
        let bytes = code.clone();
        let all: Vec<u8> = {
            let mut found = Vec::new();
            let mut at = 0x1000;
            let mut code = bytes;
            loop {
                let mut bytes = [0; LONGEST];
                let count = code.at(at, &mut bytes);
                if count == 0 {
                    break;
                }
                found.push(bytes[0]);
                at += 1;
            }
            found
        };
        let decoded = Decoder::with_ip(64, &all, 0x1000, DecoderOptions::NONE).into_iter().collect::<Vec<_>>();
        let is_branch =
            |i: &Instruction| matches!(i.flow_control(), FlowControl::ConditionalBranch | FlowControl::IndirectBranch);
        decoded.into_iter().filter(is_branch).collect()
    }

    #[test]
    fn an_if_ends_behind_its_body_and_an_early_return_never() {
        let mut a = CodeAssembler::new(64).unwrap();
        let (mut behind, mut early) = (a.create_label(), a.create_label());
        a.test(eax, eax).unwrap();
        a.jz(behind).unwrap();
        a.mov(ebx, 1).unwrap();
        a.set_label(&mut behind).unwrap();
        a.mov(ecx, 2).unwrap();
        a.test(ebx, ebx).unwrap();
        a.jz(early).unwrap();
        a.mov(ecx, 3).unwrap();
        a.ret().unwrap();
        a.set_label(&mut early).unwrap();
        a.ret().unwrap();
        let mut code = known(&mut a);
        let found = branches(&mut code);
        let mut post = PostDominators::default();
        // The second way goes through the body into the code behind it without a jump.
        assert_eq!(post.of(found[0].ip(), &mut code), Meet::At(found[0].near_branch_target()));
        assert_eq!(post.of(found[1].ip(), &mut code), Meet::Exit);
    }

    #[test]
    fn a_loop_ends_behind_it_and_so_do_its_breaks() {
        let mut a = CodeAssembler::new(64).unwrap();
        let (mut head, mut out) = (a.create_label(), a.create_label());
        a.set_label(&mut head).unwrap();
        a.test(eax, eax).unwrap();
        a.jz(out).unwrap();
        a.test(ebx, ebx).unwrap();
        a.jz(out).unwrap();
        a.dec(eax).unwrap();
        a.jmp(head).unwrap();
        a.set_label(&mut out).unwrap();
        a.ret().unwrap();
        let mut code = known(&mut a);
        let found = branches(&mut code);
        let mut post = PostDominators::default();
        for branch in &found {
            assert_eq!(post.of(branch.ip(), &mut code), Meet::At(found[0].near_branch_target()));
        }
    }

    #[test]
    fn a_switch_learns_its_targets() {
        let mut a = CodeAssembler::new(64).unwrap();
        a.jmp(rax).unwrap();
        a.nop().unwrap();
        a.nop().unwrap();
        a.ret().unwrap();
        let mut code = known(&mut a);
        let mut post = PostDominators::default();
        assert_eq!(post.of(0x1000, &mut code), Meet::Exit);
        post.jumped(0x1000, 0x1002);
        let before = post.generation();
        post.jumped(0x1000, 0x1003);
        assert_ne!(before, post.generation());
        assert_eq!(post.of(0x1000, &mut code), Meet::At(0x1003));
        post.jumped(0x1000, 0x1003);
        assert_eq!(post.of(0x1000, &mut code), Meet::At(0x1003));
    }

    #[test]
    fn what_nobody_knows_is_an_exit_and_a_loop_without_end_has_none() {
        let mut a = CodeAssembler::new(64).unwrap();
        let mut forever = a.create_label();
        a.test(eax, eax).unwrap();
        a.jz(0x9000).unwrap();
        a.set_label(&mut forever).unwrap();
        a.test(ebx, ebx).unwrap();
        a.jz(forever).unwrap();
        a.jmp(forever).unwrap();
        let mut code = known(&mut a);
        let found = branches(&mut code);
        let mut post = PostDominators::default();
        assert_eq!(post.of(found[0].ip(), &mut code), Meet::At(0x9000));
        assert_eq!(post.of(found[1].ip(), &mut code), Meet::Exit);
    }

    /// Every way from a node to the exit goes through its post-dominators, and the immediate one comes first: checked by
    /// taking nodes out of small random graphs.
    #[test]
    fn the_first_node_on_all_ways_is_found() {
        let mut state = 11u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..500 {
            let count = 2 + random(7);
            let mut ways = vec![Vec::new()];
            for _ in 1..count {
                let edges = 1 + random(2);
                ways.push((0..edges).map(|_| random(count)).collect());
            }
            let reaches = |from: usize, without: Option<usize>| {
                let (mut seen, mut stack) = (vec![false; count], vec![from]);
                while let Some(node) = stack.pop() {
                    if Some(node) != without && !std::mem::replace(&mut seen[node], true) {
                        stack.extend(&ways[node]);
                    }
                }
                seen[0]
            };
            let parents = dominators_of_reversed(&ways);
            for node in 1..count {
                if !reaches(node, None) {
                    assert_eq!(parents[node], None);
                    continue;
                }
                let on_all = |other: usize| other != node && (other == 0 || !reaches(node, Some(other)));
                let all: Vec<usize> = (0..count).filter(|&other| on_all(other)).collect();
                let mut chain = Vec::new();
                let mut at = parents[node].unwrap();
                loop {
                    chain.push(at);
                    if at == 0 {
                        break;
                    }
                    at = parents[at].unwrap();
                }
                chain.sort_unstable();
                assert_eq!(chain, all, "{node} in {ways:?}");
            }
        }
    }
}
