//! The search over paths. It runs nothing itself: its caller asks for the next input, runs it, and reports what happened. A fuzzing
//! campaign can do the same with its corpus.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use record::stop::StopRequest;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

use crate::executed::Executed;
use crate::expr::Expr;
use crate::follow::Followed;
use crate::graph::Graph;
use crate::path::{Path, PathStepKind};
use crate::solver::{Solved, SolverStage, Stages};
use crate::target::possible;

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

/// What the callers of a place can reach, by run and call path.
type Callers = FxHashMap<(usize, u32), OfCallers>;

/// What they can reach together, and how far the nearest of it is.
#[derive(Clone, Copy, Debug)]
struct OfCallers {
    weight: u64,
    steps: Option<u64>,
}

/// What is known of an input that was proposed.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub input: Vec<u8>,
    /// Of the run that it was made of.
    pub from: u32,
    pub stage: SolverStage,
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
/// What a run costs, in queries without an answer. A side loses half of its weight for each.
const RUN_COST: u32 = 4;
/// Blocks beyond which one distance is as good as another.
const FAR_STEPS: u64 = 255;
/// What the way back to a caller counts for, in blocks.
const CALLER_STEPS: u64 = 4;
/// Of a weight, below the distance.
const WEIGHT_BITS: u32 = 20;
/// Queries with more clauses count for several.
const CLAUSES_PER_QUERY: u64 = 50_000;
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
    /// What the tries of a side cost, in queries.
    spent: FxHashMap<(u64, u64), u32>,
    executed: Executed,
    pm: FxHashSet<u64>,
    inputs: FxHashSet<(u32, Vec<u8>)>,
    random: u64,
    order: u64,
    /// Runs that did not take the side that they were made for.
    pub missed: u64,
    /// Branches that were not tried because too many wait, or one repeats too often.
    pub forgotten: u64,
    /// Jumps and calls to places that depend on the input, not all of which are known.
    pub open_jumps: u64,
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
            spent: FxHashMap::default(),
            executed: Executed::default(),
            pm: FxHashSet::default(),
            inputs: FxHashSet::default(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            order: 0,
            missed: 0,
            forgotten: 0,
            open_jumps: 0,
        }
    }

    pub fn stages(&self) -> &Stages {
        &self.stages
    }

    /// When queries end that nobody waits for any more.
    pub fn end_queries(&mut self, deadline: Instant, stop: Option<&'static StopRequest>) {
        (self.stages.limit.deadline, self.stages.limit.stop) = (Some(deadline), stop);
    }

    /// Branches that wait.
    pub fn waiting(&self) -> usize {
        self.candidates.len()
    }

    /// Blocks and PM instructions that ran.
    pub fn covered(&self) -> (usize, usize) {
        (self.executed.len(), self.pm.len())
    }

    /// The instruction at `pc` ran.
    pub fn has_executed(&self, pc: u64) -> bool {
        self.executed.contains(pc)
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
        self.graph.take(&followed.ways);
        self.graph.grow(followed.blocks.iter().map(|&(pc, _)| pc));
        for &(pc, len) in &followed.blocks {
            news.blocks += usize::from(self.executed.insert(pc, len));
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
        self.propose(Run { input, from, followed, generation });
        if !self.goals.is_empty() {
            self.distances = self.graph.distances(&self.goals);
        } else if self.strategy == Strategy::PmAware && (news.blocks > 0 || self.graph.is_stale()) {
            let Explorer { graph, executed, .. } = self;
            graph.weigh(|pc| executed.contains(pc));
        }
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
        let mut targets: FxHashMap<Expr, Vec<u64>> = FxHashMap::default();
        for at in 0..borrowed.followed.path.steps.len() {
            let Followed { arena, path, .. } = &borrowed.followed;
            let step = path.steps[at];
            let structure = arena.structure(step.condition);
            let sides = match step.kind {
                PathStepKind::Branch { taken, target, next } => vec![if taken { next } else { target }],
                PathStepKind::Jump { target, value } => {
                    let known = targets.entry(value).or_insert_with(|| possible(arena, value).unwrap_or_default());
                    self.open_jumps += u64::from(known.is_empty());
                    let ways: Vec<(u64, u64)> = known.iter().map(|&to| (step.pc, to)).collect();
                    self.graph.take(&ways);
                    let others: Vec<u64> = known.iter().copied().filter(|&to| to != target).collect();
                    if known.is_empty() { vec![0] } else { others }
                }
                PathStepKind::Address => {
                    structure.hash(&mut all);
                    continue;
                }
                PathStepKind::Driver => continue,
            };
            for side in sides {
                let edge = (step.pc, side);
                let occurrence = occurrences.entry(edge).or_default();
                *occurrence += 1;
                let mut hasher = FxHasher::default();
                (edge, *occurrence, before).hash(&mut hasher);
                if side == 0 {
                    side_of(step.kind).hash(&mut hasher);
                }
                let key = hasher.finish();
                // The same branches under other conditions are another beginning: a vector compare finds the first difference without a
                // branch.
                let mut beginning = all.clone();
                (edge, at, structure).hash(&mut beginning);
                let whole = beginning.finish();
                self.forgotten += u64::from(*occurrence > OCCURRENCES);
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
            (step.pc, at, structure, side_of(step.kind)).hash(&mut all);
            before.rotate_left(1);
            before[2] = step.pc ^ side_of(step.kind).rotate_left(17);
        }
        drop(borrowed);
        self.candidates.append(&mut made);
        // The targets of jumps are code, too.
        self.graph.grow([]);
        self.forget_oldest();
    }

    /// Expressions take memory: the oldest branches go.
    fn forget_oldest(&mut self) {
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
        self.forgotten += excess as u64;
        self.candidates.drain(..excess);
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// How promising a candidate is; the greatest is taken. `callers` remembers what the callers of a place can reach.
    fn score(&self, candidate: &Candidate, callers: &mut Callers) -> (u64, u64, u64, std::cmp::Reverse<u64>) {
        let new = u64::from(!self.edges.contains(&candidate.edge));
        let tried = self.tried_edges.get(&candidate.edge).copied().unwrap_or(0);
        let spent = self.spent.get(&candidate.edge).copied().unwrap_or(0) / RUN_COST;
        let fresh = u64::from(u32::MAX - tried.min(1000) - candidate.occurrence / 64);
        let first = if self.goals.is_empty() {
            self.weight(candidate, callers)
        } else {
            // Nearer is better; new sides before old ones.
            u64::MAX / 2 - self.distance(candidate)
        };
        (new, first >> spent.min(40), fresh, std::cmp::Reverse(candidate.order))
    }

    /// How near PM code is that never ran, and how much of it can be reached. Both are needed: in a program that reads commands in a loop
    /// everything can be reached from everywhere, and only the distance tells a command that never ran from one that did.
    fn weight(&self, candidate: &Candidate, callers: &mut Callers) -> u64 {
        let run = locked(&candidate.run);
        let path = &run.followed.path;
        let place = (Arc::as_ptr(&candidate.run) as usize, path.steps[candidate.at].frames);
        let of_callers = *callers.entry(place).or_insert_with(|| self.of_callers(path.frames(candidate.at)));
        let (side, taken) = (candidate.side, side_of(path.steps[candidate.at].kind));
        let (weight, other) = (self.graph.weight(side), self.graph.weight(taken));
        let weight = of_callers.weight + 2 * weight + 4 * weight.saturating_sub(other);
        let steps = self.graph.steps(side).into_iter().chain(of_callers.steps).min();
        let near = steps.map_or(0, |steps| FAR_STEPS.saturating_sub(steps) + 1);
        near << WEIGHT_BITS | weight.min((1 << WEIGHT_BITS) - 1)
    }

    /// What callers do after it: a comparison deep inside the C library counts for what the program does with its outcome, but for less than
    /// the branch that the outcome decides.
    fn of_callers(&self, frames: &[u64]) -> OfCallers {
        let weight = frames.iter().map(|&pc| self.graph.weight(pc)).sum();
        let away = frames.iter().rev().zip(1..);
        let steps = away.filter_map(|(&pc, depth)| Some(self.graph.steps(pc)? + CALLER_STEPS * depth)).min();
        OfCallers { weight, steps }
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
                let mut callers = Callers::default();
                let best = self.candidates.iter().enumerate().max_by_key(|(_, c)| self.score(c, &mut callers));
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
            let side = (candidate.side != 0).then_some(candidate.side);
            let before = self.stages.cost;
            let solved = self.stages.other_side(arena, path, candidate.at, side, input);
            let clauses = self.stages.cost - before;
            let own = 1 + u32::try_from(clauses / CLAUSES_PER_QUERY).unwrap_or(RUN_COST).min(RUN_COST);
            *self.spent.entry(candidate.edge).or_default() += if solved.is_some() { RUN_COST } else { own };
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
fn side_of(kind: PathStepKind) -> u64 {
    match kind {
        PathStepKind::Branch { taken, target, next } => {
            if taken {
                target
            } else {
                next
            }
        }
        PathStepKind::Jump { target, .. } => target,
        PathStepKind::Address | PathStepKind::Driver => 0,
    }
}

/// Whether any branch of the path depends on the input.
pub fn depends(path: &Path) -> bool {
    path.has_branches()
}
