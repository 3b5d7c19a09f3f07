//! The search: workers walk the trace, each on its own, and share out the crash points.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fleet::dispatch::{Dispatch, Fate, Watch};
use fleet::threads::Threads;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use trace::TraceReader;
use trace::event::EventId;

use crate::assumed::AssumedRepairs;
use crate::chosen::Chosen;
use crate::journal::{Journal, JournalError};
use crate::judge::Knowledge;
use crate::outcome::{Coverage, PointOutcome, merge};
use crate::read_tree::{ReadTree, ReadTreeLimits};
use crate::recovery::{Recovery, RecoveryError};
use crate::rounds::{Round, Selection, Shard};
pub use crate::stages::Part;
use crate::stages::{Stage, stages};
use crate::strategy::StrategySpec;
use crate::strategy::inferred::KnownConditions;
use crate::survey::{Pick, Survey};
use crate::walk::{Rules, Walk, WalkError};
use crate::worker::{AtStage, Shared, Totals, Turn, Worker};
use verdict::contradiction::Contradiction;
use verdict::position::CrashPositions;

/// All that verdicts depend on. Searches with equal options over the same trace can be joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchOptions {
    pub rules: Rules,
    pub selection: Selection,
    /// As [`StrategySpec::list`] returns them.
    pub strategies: Vec<StrategySpec>,
    /// Failing states to keep per point, strategy and symptom. All are counted.
    pub keep_failing: usize,
    /// What is run on the images and how it is judged, as the user could say it again. Only compared.
    pub recovery: String,
    /// What the strategy `inferred` breaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<KnownConditions>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        SearchOptions {
            rules: Rules::default(),
            selection: Selection::default(),
            strategies: vec![StrategySpec::ProgramOrder, StrategySpec::GuaranteedOnly],
            keep_failing: 4,
            recovery: String::new(),
            conditions: None,
        }
    }
}

/// When to stop though there is more to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget<'a> {
    /// Set from outside, by a signal's handler for example.
    pub stop: Option<&'a AtomicBool>,
    pub deadline: Option<Instant>,
    /// So many recoveries.
    pub runs: Option<u64>,
    /// So many states decided, by a run or without.
    pub states: Option<u64>,
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Progress {
    /// From 1.
    pub stage: usize,
    pub stages: usize,
    /// The first, 0, has the first occurrence of each failure point.
    pub round: Round,
    /// Of this stage.
    pub points_done: u64,
    pub points: u64,
    /// Of the whole search.
    pub states_decided: u64,
    pub states_failing: u64,
    pub recovery_runs: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error("recovery cannot be run on a crash image at event {}: {source}", .at.0)]
    Recovery { at: EventId, source: RecoveryError },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the trace has no crash point {0}")]
    NoSuchPoint(u64),
}

/// What a search has found.
#[derive(Debug, Default)]
pub struct Found {
    /// One per point that was begun, in the order of the trace, those of the journal included.
    pub points: Vec<PointOutcome>,
    pub coverage: Coverage,
    /// Recovery is not a function of what it reads: from there on every state was run.
    pub contradiction: Option<Contradiction>,
    /// What recovery did, by what it read; none if every state was run.
    pub read_tree: Option<ReadTree>,
}

/// A search that is about to start.
#[derive(Clone)]
pub struct Search<'a> {
    pub reader: &'a TraceReader,
    pub survey: &'a Survey,
    pub options: &'a SearchOptions,
    pub shard: Shard,
    /// False runs every state.
    pub equivalence: bool,
    pub limits: ReadTreeLimits,
    pub positions: Arc<CrashPositions>,
    /// Which of its stages to go through.
    pub part: Part,
    pub assumed: Arc<AssumedRepairs>,
    /// Where the first operation begins: crashes before it get a tenth of the time.
    pub setup_end: Option<EventId>,
    /// What other searches have covered.
    pub covered: FxHashSet<(u64, StrategySpec)>,
    /// Only the points with these numbers, whatever is known of them.
    pub again: Option<&'a FxHashSet<u64>>,
    pub budget: Budget<'a>,
    /// Finished points go there; those that are there already are not judged again.
    pub journal: Option<&'a Journal>,
    /// Called after each point and each run, by any worker.
    pub on_progress: &'a (dyn Fn(&Progress) + Sync),
}

impl std::fmt::Debug for Search<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Search").field("options", self.options).field("shard", &self.shard).finish_non_exhaustive()
    }
}

impl<'a> Search<'a> {
    /// A search of the whole trace, with equivalence and without a limit.
    pub fn new(reader: &'a TraceReader, survey: &'a Survey, options: &'a SearchOptions) -> Self {
        Search {
            reader,
            survey,
            options,
            shard: Shard::WHOLE,
            equivalence: true,
            limits: ReadTreeLimits::default(),
            positions: Arc::default(),
            part: Part::default(),
            assumed: Arc::default(),
            setup_end: None,
            covered: FxHashSet::default(),
            again: None,
            budget: Budget::default(),
            journal: None,
            on_progress: &|_| {},
        }
    }

    /// Searches, with one worker per recovery.
    pub fn run<R: Recovery + Send>(&self, recoveries: &mut [R]) -> Result<Found, SearchError> {
        let read_tree = self.equivalence.then(|| ReadTree::new(self.limits));
        self.run_knowing(recoveries, read_tree)
    }

    /// Searches; `read_tree` is what earlier searches of the trace found out. Points that are searched
    /// [`again`](Self::again), or with repairs assumed, are not noted in the journal.
    pub fn run_knowing<R: Recovery + Send>(
        &self,
        recoveries: &mut [R],
        read_tree: Option<ReadTree>,
    ) -> Result<Found, SearchError> {
        let stages = stages(self.survey, self.options, self.shard, self.part);
        let knowledge = Knowledge::new(read_tree);
        let noted = self.journal.filter(|_| self.again.is_none() && self.covered.is_empty());
        let mut outcomes = noted.map(Journal::outcomes).unwrap_or_default();
        let known: FxHashSet<(u64, StrategySpec)> =
            outcomes.iter().flat_map(PointOutcome::covers).chain(self.covered.iter().copied()).collect();
        let chosen = Arc::new(Chosen::of(self.reader, self.survey, self.options, &self.assumed)?);
        let mut workers = Vec::new();
        for recovery in recoveries {
            workers.push(Worker::new(self.walk(&chosen)?, recovery));
        }
        let totals = Totals::default();
        // What hangs is put off until everything else is done.
        let turns = [Turn::First, Turn::PutOff].into_iter();
        for (turn, (number, stage)) in turns.flat_map(|turn| stages.iter().enumerate().map(move |stage| (turn, stage)))
        {
            if self.is_stopped(&totals) {
                break;
            }
            let picks = match turn {
                Turn::First => self.new_picks(stage, &known),
                Turn::PutOff => totals.put_off(number + 1),
            };
            if picks.is_empty() {
                continue;
            }
            let place = Progress {
                stage: number + 1,
                stages: stages.len(),
                round: *stage.rounds.start(),
                ..Progress::default()
            };
            let mut shared = Shared::new(self, stage, &picks, &knowledge, &totals, place, workers.len());
            shared.turn = turn;
            let mut hands: Vec<AtStage<'_, '_, '_, &mut R>> =
                workers.iter_mut().map(|worker| AtStage { worker, shared: &shared }).collect();
            let take = |_, fate: Fate<Option<PointOutcome>>| match fate {
                Fate::Done(Some(outcome)) => shared.finish(outcome),
                Fate::Done(None) | Fate::SetAside(_) => Ok(()),
            };
            let watch = Watch { is_stopped: &|| shared.is_stopped(), take: &take };
            Threads(&mut hands).dispatch(&picks, &watch)?;
            outcomes.extend(shared.into_outcomes());
        }
        let points = merge(outcomes);
        let mut coverage = coverage(self.survey, self.options, self.shard, &points);
        if knowledge.is_contradicted() {
            coverage.withdraw_exhaustive();
        }
        let (read_tree, contradiction) = knowledge.into_parts();
        Ok(Found { points, coverage, contradiction, read_tree })
    }

    /// The points of a stage that are to be judged.
    pub(crate) fn new_picks(&self, stage: &Stage, known: &FxHashSet<(u64, StrategySpec)>) -> Vec<Pick> {
        let is_new = |pick: &Pick| !stage.strategies.iter().all(|spec| known.contains(&(pick.index, *spec)));
        let mut picks = self.options.selection.picks(self.survey, self.shard, &stage.rounds);
        picks.retain(|pick| self.again.map_or_else(|| is_new(pick), |again| again.contains(&pick.index)));
        picks
    }

    /// A walk that sees what this search assumes.
    pub(crate) fn walk(&self, chosen: &Arc<Chosen>) -> Result<Walk<'a>, WalkError> {
        let mut walk = Walk::new(self.reader, self.options.rules)?.with_chosen(Arc::clone(chosen));
        walk.set_positions(Arc::clone(&self.positions));
        walk.assume(Arc::clone(&self.assumed));
        Ok(walk)
    }

    pub(crate) fn is_stopped(&self, totals: &Totals) -> bool {
        let Budget { stop, deadline, runs, states } = self.budget;
        stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
            || runs.is_some_and(|most| totals.runs.load(Ordering::Relaxed) >= most)
            || states.is_some_and(|most| totals.decided.load(Ordering::Relaxed) >= most)
            || deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// What outcomes, as [`merge`] returns them, cover of a search.
pub fn coverage(survey: &Survey, options: &SearchOptions, shard: Shard, outcomes: &[PointOutcome]) -> Coverage {
    let rounds = options.selection.rounds(survey, shard);
    let mut coverage = Coverage {
        crash_points: survey.len(),
        failure_points: survey.failure_points().len() as u64,
        creation_points: survey.creation_points(),
        points_wanted: rounds.iter().map(|(_, count)| count).sum(),
        ..Coverage::default()
    };
    coverage.add(outcomes, options.strategies.len());
    coverage
}
