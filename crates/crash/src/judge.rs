//! One crash point: the strategies name states, each is decided by what is known or by a run.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use persistency::line::LineId;
use persistency::states::CrashState;
use rustc_hash::FxHashMap;

use crate::outcome::{FailingState, PointOutcome, StrategyOutcome};
use crate::points::Point;
use crate::read_tree::{KnownRuns, ReadTree, ReadTreeCache};
use crate::recovery::{Recovery, RecoveryError};
use crate::strategy::{Reach, StrategySpec};
use crate::view::{PointView, StateKey};
use verdict::contradiction::Contradiction;
use verdict::read::Read;
use verdict::verdict::Verdict;

/// Passing states of a point that are kept to compare failing ones with.
const KEEP_PASSING: usize = 32;

/// Failing states of a point that are kept, of all strategies and symptoms together.
const KEEP_FAILING: usize = 64;

/// Runs of a point that may hang: most of its other states hang as well, and each takes as long as a hundred others.
const MOST_HANGS: u64 = 4;

/// What all workers share of the states decided so far.
#[derive(Debug)]
pub(crate) struct Knowledge {
    /// None: every state is to be run.
    read_tree: Option<RwLock<ReadTree>>,
    contradicted: AtomicBool,
    contradiction: Mutex<Option<Contradiction>>,
}

impl Knowledge {
    pub fn new(read_tree: Option<ReadTree>) -> Self {
        Knowledge {
            read_tree: read_tree.map(RwLock::new),
            contradicted: AtomicBool::new(false),
            contradiction: Mutex::default(),
        }
    }

    /// Runs have contradicted each other: what was concluded from reads may be wrong.
    pub fn is_contradicted(&self) -> bool {
        self.contradicted.load(Ordering::Relaxed)
    }

    /// Every state is run, whatever is known.
    fn runs_all(&self) -> bool {
        self.read_tree.is_none()
    }

    /// The read tree, if it can be relied on, and what contradicts it.
    pub fn into_parts(self) -> (Option<ReadTree>, Option<Contradiction>) {
        let read_tree = self.read_tree.filter(|_| !self.contradicted.into_inner());
        let read_tree = read_tree.map(|read_tree| read_tree.into_inner().unwrap_or_else(PoisonError::into_inner));
        (read_tree, self.contradiction.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// What runs have contradicted each other, if they have.
    pub fn contradiction(&self) -> Option<Contradiction> {
        self.contradiction.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes in runs of others.
    pub fn learn(&self, runs: &KnownRuns) {
        let Some(read_tree) = self.read_tree() else { return };
        let exchanged = read_tree.write().unwrap_or_else(PoisonError::into_inner).learn(runs);
        if let Err(contradiction) = exchanged {
            self.contradict(contradiction);
        }
    }

    /// Runs that were not handed on yet.
    pub fn new_runs(&self) -> Option<KnownRuns> {
        let read_tree = self.read_tree()?;
        read_tree.write().unwrap_or_else(PoisonError::into_inner).new_runs()
    }

    fn read_tree(&self) -> Option<&RwLock<ReadTree>> {
        self.read_tree.as_ref().filter(|_| !self.contradicted.load(Ordering::Relaxed))
    }

    /// From here on every state is run.
    fn contradict(&self, what: Contradiction) {
        if !self.contradicted.swap(true, Ordering::Relaxed) {
            *self.contradiction.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
        }
    }
}

/// What is to be done at a point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task<'a> {
    pub point: &'a Point,
    pub strategies: &'a [StrategySpec],
    /// These have been at this point before: what they name is decided and counted.
    pub earlier: &'a [StrategySpec],
    /// Failing states to keep, per strategy and symptom.
    pub keep_failing: usize,
}

/// The fate of a state.
#[derive(Clone, Debug)]
struct Decision {
    verdict: Verdict,
    dirty_reads: Option<Rc<[LineId]>>,
}

/// One worker's tools.
pub(crate) struct Judge<'a, R> {
    pub knowledge: &'a Knowledge,
    pub cache: &'a mut ReadTreeCache,
    pub recovery: &'a mut R,
    /// Asked before every state.
    pub is_stopped: &'a dyn Fn() -> bool,
    /// Told of every state: was it run, and did it fail?
    pub on_decided: &'a dyn Fn(bool, bool),
}

impl<R: Recovery> Judge<'_, R> {
    pub fn judge(&mut self, view: &PointView<'_>, task: Task<'_>) -> Result<PointOutcome, RecoveryError> {
        if let Some(read_tree) = self.knowledge.read_tree() {
            self.cache.arrive(&read_tree.read().unwrap_or_else(PoisonError::into_inner), view);
        }
        let mut outcome = PointOutcome {
            point: *task.point,
            finished: true,
            dirty_lines: view.lines().len() as u64,
            states_possible: view.state_count(),
            strategies: Vec::new(),
            failing: Vec::new(),
            passing: Vec::new(),
            runs: 0,
            saved: 0,
            still_failing: None,
        };
        // None: decided in an earlier stage.
        let mut known: FxHashMap<StateKey, Option<Decision>> = FxHashMap::default();
        for spec in task.earlier {
            let mut strategy = spec.start(view, task.point.index);
            while let Some(state) = strategy.next(view) {
                known.insert(view.key(&state), None);
            }
        }
        let mut hangs = 0;
        for &spec in task.strategies {
            let done = self.strategy(view, task, spec, (&mut known, &mut hangs), &mut outcome)?;
            outcome.finished &= done.reach != Reach::Stopped;
            outcome.strategies.push(done);
        }
        if outcome.failing.is_empty() {
            outcome.passing.clear();
        }
        Ok(outcome)
    }

    fn strategy(
        &mut self,
        view: &PointView<'_>,
        task: Task<'_>,
        spec: StrategySpec,
        (known, hangs): (&mut FxHashMap<StateKey, Option<Decision>>, &mut u64),
        outcome: &mut PointOutcome,
    ) -> Result<StrategyOutcome, RecoveryError> {
        let mut strategy = spec.start(view, task.point.index);
        let mut done = StrategyOutcome { strategy: spec, reach: Reach::Stopped, decided: 0, failing: 0 };
        loop {
            if (self.is_stopped)() {
                return Ok(done);
            }
            if *hangs >= MOST_HANGS {
                done.reach = Reach::Capped;
                return Ok(done);
            }
            let Some(state) = strategy.next(view) else { break };
            let key = view.key(&state);
            match known.get(&key) {
                Some(Some(fate)) if !self.knowledge.runs_all() => {
                    strategy.observe(view, &state, fate.dirty_reads.as_deref());
                }
                Some(None) if !spec.learns() && !self.knowledge.runs_all() => {}
                earlier => {
                    let is_new = earlier.is_none();
                    let runs = outcome.runs;
                    let fate = match self.decide(view, &state, is_new, outcome) {
                        Err(error) if error.is_cancelled() => return Ok(done),
                        fate => fate?,
                    };
                    if let Some(Some(other)) = earlier.filter(|_| !is_new)
                        && !other.verdict.agrees(&fate.verdict)
                    {
                        let (one, other) = (other.verdict.clone(), fate.verdict.clone());
                        self.knowledge.contradict(Contradiction::Verdicts { one, other });
                    }
                    strategy.observe(view, &state, fate.dirty_reads.as_deref());
                    if fate.verdict.is_endless() {
                        *hangs += outcome.runs - runs;
                    }
                    if is_new {
                        done.decided += 1;
                        keep(spec, state, &fate.verdict, task.keep_failing, &mut done, outcome);
                    }
                    known.insert(key, Some(fate));
                }
            }
        }
        done.reach = match strategy.reach() {
            // What told states apart, or took them for one, cannot be relied on.
            Reach::Distinguishable if self.knowledge.is_contradicted() => Reach::Capped,
            reach => reach,
        };
        Ok(done)
    }

    fn decide(
        &mut self,
        view: &PointView<'_>,
        state: &CrashState,
        is_new: bool,
        outcome: &mut PointOutcome,
    ) -> Result<Decision, RecoveryError> {
        let read_tree = self.knowledge.read_tree();
        if let Some(read_tree) = read_tree {
            let read_tree = read_tree.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(decided) = read_tree.lookup(self.cache, view, state) {
                // What an earlier stage decided is only looked up for what was read.
                if is_new {
                    outcome.saved += 1;
                    (self.on_decided)(false, !decided.verdict.is_pass());
                }
                return Ok(Decision { verdict: decided.verdict, dirty_reads: Some(decided.dirty_reads.into()) });
            }
        }
        let image = view.image(state).map_err(RecoveryError::new)?;
        let observation = self.recovery.run(&image)?;
        outcome.runs += 1;
        (self.on_decided)(true, !observation.verdict.is_pass());
        let Some(reads) = observation.reads else {
            return Ok(Decision { verdict: observation.verdict, dirty_reads: None });
        };
        if let Some(read_tree) = read_tree {
            let mut read_tree = read_tree.write().unwrap_or_else(PoisonError::into_inner);
            if let Err(contradiction) = read_tree.insert(self.cache, view, state, &reads, &observation.verdict) {
                self.knowledge.contradict(contradiction);
            }
        }
        let dirty = reads.into_iter().filter_map(|read| match read {
            Read::Line(line) => view.index_of(line).map(|_| line),
            Read::Length(_) => None,
        });
        Ok(Decision { verdict: observation.verdict, dirty_reads: Some(dirty.collect()) })
    }
}

fn keep(
    strategy: StrategySpec,
    state: CrashState,
    verdict: &Verdict,
    most: usize,
    done: &mut StrategyOutcome,
    outcome: &mut PointOutcome,
) {
    if verdict.is_pass() {
        if outcome.passing.len() < KEEP_PASSING {
            outcome.passing.push(state);
        }
    } else {
        done.failing += 1;
        // Another symptom may be another bug.
        let alike = |known: &&FailingState| known.strategy == strategy && known.verdict.agrees(verdict);
        if outcome.failing.len() < KEEP_FAILING && outcome.failing.iter().filter(alike).count() < most {
            outcome.failing.push(FailingState { strategy, state, verdict: verdict.clone() });
        }
    }
}
