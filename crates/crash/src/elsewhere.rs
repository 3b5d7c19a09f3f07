//! A search whose crash points are judged elsewhere: what is sent there, and what comes back.
//!
//! A unit is a part of the crash points of a stage. All stages are handed out at once: what a later one does at a point does not
//! depend on what an earlier one found there. The outcomes are the same wherever a point is judged, but for how many
//! recoveries had to be run, which depends on who came first.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fleet::dispatch::{Dispatch, Fate, SetAside, Watch};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use verdict::contradiction::Contradiction;

use crate::journal::{Journal, JournalError};
use crate::judge::Knowledge;
use crate::outcome::{PointOutcome, merge};
use crate::points::Point;
use crate::read_tree::{KnownRuns, ReadTree, ReadTreeLimits};
use crate::recovery::Recovery;
use crate::search::{Budget, Found, Progress, Search, SearchError, coverage};
use crate::stages::{Stage, stages};
use crate::strategy::StrategySpec;
use crate::survey::Pick;
use crate::worker::{Shared, Totals, Worker};

/// Units that a stage is cut into, and points in one at most.
const UNITS: usize = 48;
const MOST_POINTS: usize = 64;

/// Some crash points of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointsUnit {
    pub strategies: Vec<StrategySpec>,
    /// Strategies that have been at these points before.
    pub earlier: Vec<StrategySpec>,
    pub picks: Vec<Pick>,
}

/// What was found at them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointsDone {
    pub outcomes: Vec<PointOutcome>,
    /// Recovery is not a function of what it reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<Contradiction>,
}

/// Crash points that nobody could judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    pub points: u64,
    pub why: SetAside,
}

impl Search<'_> {
    /// Searches elsewhere. `read_tree` is handed on, unless it turns out to be of no use.
    pub fn run_elsewhere<E: From<JournalError>>(
        &self,
        dispatch: &mut dyn Dispatch<PointsUnit, PointsDone, Error = E>,
        read_tree: Option<ReadTree>,
    ) -> Result<(Found, Vec<Unjudged>), E> {
        let noted = self.journal.filter(|_| self.again.is_none() && self.covered.is_empty());
        let before = noted.map(Journal::outcomes).unwrap_or_default();
        let known: FxHashSet<(u64, StrategySpec)> =
            before.iter().flat_map(PointOutcome::covers).chain(self.covered.iter().copied()).collect();
        let units = self.units(&known);
        let points: u64 = units.iter().map(|unit| unit.picks.len() as u64).sum();
        let totals = Totals::default();
        let done = AtomicU64::new(0);
        let found = Mutex::new((before, None, Vec::new()));
        let take = |number: usize, fate: Fate<PointsDone>| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let fate = match fate {
                Fate::Done(done) if !self.is_of(&done, &units[number]) => Fate::SetAside(SetAside {
                    lost: 0,
                    failures: vec!["a worker sent outcomes of crash points that it was not asked about".into()],
                }),
                fate => fate,
            };
            let PointsDone { outcomes, contradiction } = match fate {
                Fate::Done(done) => done,
                Fate::SetAside(why) => {
                    found.2.push(Unjudged { points: units[number].picks.len() as u64, why });
                    return Ok(());
                }
            };
            found.1 = found.1.take().or(contradiction);
            for outcome in outcomes {
                let is_noted = outcome.finished && self.again.is_none() && self.assumed.is_empty();
                if let Some(journal) = self.journal.filter(|_| is_noted) {
                    journal.add(&outcome)?;
                }
                totals.decided.fetch_add(outcome.decided(), Ordering::Relaxed);
                totals.failing.fetch_add(outcome.failing_states(), Ordering::Relaxed);
                totals.runs.fetch_add(outcome.runs, Ordering::Relaxed);
                done.fetch_add(1, Ordering::Relaxed);
                found.0.push(outcome);
            }
            (self.on_progress)(&Progress {
                stage: 1,
                stages: 1,
                points_done: done.load(Ordering::Relaxed),
                points,
                states_decided: totals.decided.load(Ordering::Relaxed),
                states_failing: totals.failing.load(Ordering::Relaxed),
                recovery_runs: totals.runs.load(Ordering::Relaxed),
                ..Progress::default()
            });
            Ok(())
        };
        dispatch.dispatch(&units, &Watch { is_stopped: &|| self.is_stopped(&totals), take: &take })?;
        let (outcomes, contradiction, unjudged) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let points = merge(outcomes);
        let mut coverage = coverage(self.survey, self.options, self.shard, &points);
        if contradiction.is_some() {
            coverage.withdraw_exhaustive();
        }
        let read_tree = read_tree.filter(|_| contradiction.is_none());
        Ok((Found { points, coverage, contradiction, read_tree }, unjudged))
    }

    /// Are all outcomes of points of this unit?
    fn is_of(&self, done: &PointsDone, unit: &PointsUnit) -> bool {
        let is_asked = |outcome: &PointOutcome| {
            let Point { index, occurrence, .. } = outcome.point;
            let pick = Pick { index, occurrence };
            unit.picks.contains(&pick) && self.survey.point(pick) == outcome.point
        };
        done.outcomes.iter().all(is_asked)
    }

    /// What there is to do, in the order of the search. Whoever counts the same points cuts them into the same units.
    fn units(&self, known: &FxHashSet<(u64, StrategySpec)>) -> Vec<PointsUnit> {
        let mut units = Vec::new();
        for stage in stages(self.survey, self.options, self.shard, self.part) {
            let picks = self.new_picks(&stage, known);
            let is_setup = |pick: &Pick| self.setup_end.is_some_and(|end| self.survey.point(*pick).at < end);
            // A bug in the set-up fails nearly everywhere, and would leave no time for the operations.
            let (setup, operations): (Vec<Pick>, Vec<Pick>) = picks.into_iter().partition(is_setup);
            for picks in [operations, setup] {
                let size = picks.len().div_ceil(UNITS).clamp(1, MOST_POINTS);
                units.extend(picks.chunks(size).map(|picks| PointsUnit {
                    strategies: stage.strategies.clone(),
                    earlier: stage.earlier.clone(),
                    picks: picks.to_vec(),
                }));
            }
        }
        units
    }
}

/// What the workers of one process know together.
#[derive(Debug)]
pub struct Station(Knowledge);

impl Station {
    /// Without equivalence, every state is run.
    pub fn new(equivalence: bool) -> Station {
        Station(Knowledge::new(equivalence.then(|| ReadTree::sharing(ReadTreeLimits::default()))))
    }

    /// Takes in what others have run.
    pub fn learn(&self, runs: &KnownRuns) {
        self.0.learn(runs);
    }
}

/// One of them.
pub struct StationWorker<'r, R>(Worker<'r, R>);

impl<R> std::fmt::Debug for StationWorker<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StationWorker").finish_non_exhaustive()
    }
}

impl<'r, R: Recovery> StationWorker<'r, R> {
    /// A worker for units of this search.
    pub fn new(
        search: &Search<'r>,
        chosen: &std::sync::Arc<crate::chosen::Chosen>,
        recovery: R,
    ) -> Result<Self, SearchError> {
        Ok(StationWorker(Worker::new(search.walk(chosen)?, recovery)))
    }

    /// From now on for units of another search of the same trace.
    pub fn turn_to(
        &mut self,
        search: &Search<'r>,
        chosen: &std::sync::Arc<crate::chosen::Chosen>,
    ) -> Result<(), SearchError> {
        self.0.start_over(search.walk(chosen)?);
        Ok(())
    }

    pub fn recovery(&mut self) -> &mut R {
        self.0.recovery()
    }

    /// Judges the points of a unit. Also returns runs that nobody else knows yet, and whether it was stopped before the end.
    pub fn perform(
        &mut self,
        search: &Search<'_>,
        station: &Station,
        unit: &PointsUnit,
        unwanted: &AtomicBool,
    ) -> Result<(PointsDone, Option<KnownRuns>, bool), SearchError> {
        if let Some(pick) = unit.picks.iter().find(|pick| pick.index >= search.survey.len()) {
            return Err(SearchError::NoSuchPoint(pick.index));
        }
        let search = Search { budget: Budget { stop: Some(unwanted), ..Budget::default() }, ..search.clone() };
        let stage = Stage {
            rounds: Default::default()..=Default::default(),
            strategies: unit.strategies.clone(),
            earlier: unit.earlier.clone(),
        };
        let totals = Totals::default();
        let shared = Shared::new(&search, &stage, &unit.picks, &station.0, &totals, Progress::default(), 1);
        let mut outcomes = Vec::new();
        for pick in &unit.picks {
            if shared.is_stopped() {
                break;
            }
            outcomes.extend(self.0.point(&shared, *pick)?);
        }
        let whole = outcomes.len() == unit.picks.len() && outcomes.iter().all(|outcome| outcome.finished);
        let contradiction = station.0.contradiction();
        Ok((PointsDone { outcomes, contradiction }, station.0.new_runs(), !whole))
    }
}
