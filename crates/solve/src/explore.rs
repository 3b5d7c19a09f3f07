//! The search over paths. It runs nothing itself: whoever drives it asks for the next input, runs it, and tells what happened. A fuzzing
//! campaign can do the same with its corpus.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

use crate::follow::Followed;
use crate::graph::Graph;
use crate::path::{Kind, Path};
use crate::solver::{Solved, Stage, Stages};

/// Which branch is solved next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// From where the most PM code that never ran can be reached (Agamotto §4.3).
    PmAware,
    /// The oldest run first, from the beginning of its path.
    Breadth,
    /// Any.
    Random,
}

/// A run, as the search remembers it.
#[derive(Debug)]
struct Run {
    input: Vec<u8>,
    /// What the caller knows it by.
    from: u32,
    followed: Followed,
    generation: u32,
}

/// A branch of a run that could go the other way.
#[derive(Clone, Debug)]
struct Candidate {
    run: Arc<Mutex<Run>>,
    at: usize,
    /// Where the other side begins; 0: not known.
    side: u64,
    edge: (u64, u64),
    occurrence: u32,
    key: u64,
    /// With everything that the path decided before.
    whole: u64,
    order: u64,
    generation: u32,
}

/// What is known of an input that was proposed.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub input: Vec<u8>,
    /// Of the run that it was made of.
    pub from: u32,
    pub stage: Stage,
    /// The branch that it should turn.
    pub pc: u64,
    pub side: u64,
}

/// What a run brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Branch sides that no run had taken.
    pub edges: usize,
    /// Blocks that no run had executed.
    pub blocks: usize,
    /// PM instructions that no run had executed.
    pub pm: usize,
}

/// Branches that wait at most; the least promising go.
const MOST_CANDIDATES: usize = 50_000;
/// Expressions that all waiting branches may keep.
const MOST_NODES: usize = 12_000_000;
/// Times that a side is tried from different beginnings before it has to wait.
const MOST_TRIES: u32 = 64;
/// Times that one branch is turned at the same place in its path, from different beginnings.
const OCCURRENCES: u32 = 512;

#[derive(Debug)]
pub struct Explorer {
    strategy: Strategy,
    stages: Stages,
    graph: Graph,
    /// What `--reach` asks for, and how far every block is from it.
    goals: Vec<u64>,
    distances: FxHashMap<u64, u64>,
    candidates: Vec<Candidate>,
    attempted: FxHashSet<u64>,
    edges: FxHashSet<(u64, u64)>,
    tried_edges: FxHashMap<(u64, u64), u32>,
    executed: FxHashSet<u64>,
    pm: FxHashSet<u64>,
    inputs: FxHashSet<(u32, Vec<u8>)>,
    random: u64,
    order: u64,
    /// Runs that did not take the side that they were made for.
    pub missed: u64,
}

impl Explorer {
    pub fn new(strategy: Strategy, stages: Stages, seed: u64, goals: Vec<u64>) -> Explorer {
        Explorer {
            strategy,
            stages,
            graph: Graph::default(),
            goals,
            distances: FxHashMap::default(),
            candidates: Vec::new(),
            attempted: FxHashSet::default(),
            edges: FxHashSet::default(),
            tried_edges: FxHashMap::default(),
            executed: FxHashSet::default(),
            pm: FxHashSet::default(),
            inputs: FxHashSet::default(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            order: 0,
            missed: 0,
        }
    }

    pub fn stages(&self) -> &Stages {
        &self.stages
    }

    /// Branches that wait.
    pub fn waiting(&self) -> usize {
        self.candidates.len()
    }

    /// Blocks and PM instructions that ran.
    pub fn covered(&self) -> (usize, usize) {
        (self.executed.len(), self.pm.len())
    }

    pub fn has_executed(&self, pc: u64) -> bool {
        self.executed.contains(&pc)
    }

    /// Places to get to, once they are known.
    pub fn set_goals(&mut self, goals: Vec<u64>) {
        self.goals = goals;
        self.distances = self.graph.distances(&self.goals);
    }

    /// An input was run: `pm` are the PM instructions that it executed. Proposals that are made of the run are told `from`: a caller with
    /// several starting states knows by it which one they are for.
    pub fn ran(
        &mut self,
        input: Vec<u8>,
        followed: Followed,
        pm: &[u64],
        proposal: Option<&Proposal>,
        from: u32,
    ) -> News {
        let generation = proposal.map_or(0, |_| 1);
        let mut news = News::default();
        if let Some(proposal) = proposal {
            let taken =
                followed.path.steps.iter().any(|step| step.pc == proposal.pc && side_of(step.kind) == proposal.side);
            let reached = followed.blocks.iter().any(|&(pc, _)| pc == proposal.side);
            self.missed += u64::from(!taken && !reached);
        }
        self.graph.map(&followed.mapped);
        self.graph.grow(followed.blocks.iter().map(|&(pc, _)| pc));
        for &(pc, _) in &followed.blocks {
            news.blocks += usize::from(self.executed.insert(pc));
        }
        for &pc in pm {
            news.pm += usize::from(self.pm.insert(pc));
        }
        for step in &followed.path.steps {
            if step.kind.is_decision() {
                news.edges += usize::from(self.edges.insert((step.pc, side_of(step.kind))));
            }
        }
        self.inputs.insert((from, input.clone()));
        if !self.goals.is_empty() {
            self.distances = self.graph.distances(&self.goals);
        }
        if news.blocks > 0 || self.graph.is_stale() {
            let Explorer { graph, executed, .. } = self;
            graph.weigh(|pc| executed.contains(&pc));
        }
        self.propose(Run { input, from, followed, generation });
        news
    }

    /// All branches of a run that could go the other way.
    fn propose(&mut self, run: Run) {
        let run = Arc::new(Mutex::new(run));
        let borrowed = locked(&run);
        let mut occurrences: FxHashMap<(u64, u64), u32> = FxHashMap::default();
        let mut before = [0u64; 3];
        let mut all = FxHasher::default();
        let generation = borrowed.generation;
        let mut made = Vec::new();
        for (at, step) in borrowed.followed.path.steps.iter().enumerate() {
            let side = match step.kind {
                Kind::Branch { taken, target, next } => {
                    if taken {
                        next
                    } else {
                        target
                    }
                }
                Kind::Jump { .. } => 0,
                Kind::Address => {
                    borrowed.followed.arena.structure(step.condition).hash(&mut all);
                    continue;
                }
                Kind::Driver => continue,
            };
            let edge = (step.pc, side);
            let occurrence = occurrences.entry(edge).or_default();
            *occurrence += 1;
            let mut hasher = FxHasher::default();
            (edge, *occurrence, before).hash(&mut hasher);
            if side == 0 {
                side_of(step.kind).hash(&mut hasher);
            }
            let key = hasher.finish();
            // The same branches under other conditions are another beginning: a vector compare finds the first difference without a branch.
            (edge, at, borrowed.followed.arena.structure(step.condition)).hash(&mut all);
            let whole = all.finish();
            side_of(step.kind).hash(&mut all);
            before.rotate_left(1);
            before[2] = step.pc ^ side_of(step.kind).rotate_left(17);
            if *occurrence > OCCURRENCES || self.attempted.contains(&whole) {
                continue;
            }
            self.order += 1;
            made.push(Candidate {
                run: Arc::clone(&run),
                at,
                side,
                edge,
                occurrence: *occurrence,
                key,
                whole,
                order: self.order,
                generation,
            });
        }
        drop(borrowed);
        self.candidates.append(&mut made);
        // The oldest go: their expressions take memory.
        let (mut runs, mut nodes) = (FxHashSet::default(), 0);
        let mut keep = 0;
        for candidate in self.candidates.iter().rev().take(MOST_CANDIDATES) {
            if runs.insert(Arc::as_ptr(&candidate.run)) {
                nodes += locked(&candidate.run).followed.arena.len();
                if nodes > MOST_NODES && keep > 0 {
                    break;
                }
            }
            keep += 1;
        }
        let excess = self.candidates.len() - keep;
        self.candidates.drain(..excess);
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// How promising a candidate is; the greatest is taken.
    fn score(&self, candidate: &Candidate) -> (u64, u64, u64, std::cmp::Reverse<u64>) {
        let new = u64::from(!self.edges.contains(&candidate.edge));
        let tried = self.tried_edges.get(&candidate.edge).copied().unwrap_or(0);
        let fresh = u64::from(u32::MAX - tried.min(1000) - candidate.occurrence / 64);
        let first = if self.goals.is_empty() {
            self.weight(candidate)
        } else {
            // Nearer is better; new sides before old ones.
            u64::MAX / 2 - self.distance(candidate)
        };
        // A side that was taken already is worth less: it leads to the same code in another state.
        (new, first >> tried.min(40), fresh, std::cmp::Reverse(candidate.order))
    }

    /// Of the other side, and of what its callers do then.
    fn weight(&self, candidate: &Candidate) -> u64 {
        let run = locked(&candidate.run);
        let frames = run.followed.path.frames(candidate.at);
        frames.iter().map(|&pc| self.graph.weight(pc)).sum::<u64>() + self.graph.weight(candidate.side)
    }

    fn distance(&self, candidate: &Candidate) -> u64 {
        const FAR: u64 = 1 << 20;
        let run = locked(&candidate.run);
        let frames = run.followed.path.frames(candidate.at);
        let of = |pc: &u64| self.distances.get(pc).copied();
        of(&candidate.side).or_else(|| frames.iter().rev().filter_map(of).min().map(|d| d + 64)).unwrap_or(FAR)
    }

    fn choose(&mut self) -> Option<Candidate> {
        let attempted = &self.attempted;
        self.candidates.retain(|candidate| !attempted.contains(&candidate.whole));
        if self.candidates.is_empty() {
            return None;
        }
        // A branch that was tried after the same three steps only once nothing else is left, unless nobody ever took its other side: what
        // was impossible after one beginning may be possible after another.
        let (edges, tried) = (&self.edges, &self.tried_edges);
        let untaken =
            |c: &Candidate| !edges.contains(&c.edge) && tried.get(&c.edge).is_none_or(|&times| times < MOST_TRIES);
        let (fresh, stale): (Vec<Candidate>, Vec<Candidate>) =
            std::mem::take(&mut self.candidates).into_iter().partition(|c| !attempted.contains(&c.key) || untaken(c));
        let rest = if fresh.is_empty() {
            self.candidates = stale;
            Vec::new()
        } else {
            self.candidates = fresh;
            stale
        };
        let at = match self.strategy {
            Strategy::Random => (self.random() % self.candidates.len() as u64) as usize,
            Strategy::Breadth => {
                let best = self.candidates.iter().enumerate().min_by_key(|(_, c)| (c.generation, c.order));
                best.map_or(0, |(at, _)| at)
            }
            Strategy::PmAware => {
                let best = self.candidates.iter().enumerate().max_by_key(|(_, c)| self.score(c));
                best.map_or(0, |(at, _)| at)
            }
        };
        let chosen = self.candidates.swap_remove(at);
        self.candidates.extend(rest);
        Some(chosen)
    }

    /// The next input to run; `None`: no branch is left. `go_on` is asked between queries.
    pub fn next(&mut self, mut go_on: impl FnMut() -> bool) -> Option<Proposal> {
        while go_on() {
            let candidate = self.choose()?;
            self.attempted.extend([candidate.key, candidate.whole]);
            *self.tried_edges.entry(candidate.edge).or_default() += 1;
            let mut run = locked(&candidate.run);
            let Run { input, followed, from, .. } = &mut *run;
            let Followed { arena, path, .. } = followed;
            let pc = path.steps[candidate.at].pc;
            let solved = self.stages.other_side(arena, path, candidate.at, input);
            let Some(Solved { input, stage }) = solved else { continue };
            if self.inputs.insert((*from, input.clone())) {
                return Some(Proposal { input, from: *from, stage, pc, side: candidate.side });
            }
        }
        None
    }
}

/// A run is only ever used by whoever has the explorer.
fn locked(run: &Mutex<Run>) -> MutexGuard<'_, Run> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a step went.
fn side_of(kind: Kind) -> u64 {
    match kind {
        Kind::Branch { taken, target, next } => {
            if taken {
                target
            } else {
                next
            }
        }
        Kind::Jump { target } => target,
        Kind::Address | Kind::Driver => 0,
    }
}

/// Whether any branch of the path depends on the input.
pub fn depends(path: &Path) -> bool {
    path.has_branches()
}
