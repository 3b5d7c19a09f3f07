//! One thread of a search, and what it shares with the others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fleet::threads::Work;
use rustc_hash::FxHashSet;
use trace::event::EventId;

use crate::judge::{Judge, Knowledge, Task};
use crate::outcome::PointOutcome;
use crate::points::{FailurePoint, Point};
use crate::read_tree::ReadTreeCache;
use crate::recovery::Recovery;
use crate::search::{Progress, Search, SearchError};
use crate::stages::Stage;
use crate::survey::Pick;
use crate::walk::Walk;

/// Of the time, what crashes in the set-up may take.
const SETUP_SHARE: u64 = 10;

/// Of the time, what crash points at which runs hang may take.
const HANG_SHARE: u64 = 4;

/// Events between two looks at whether the search was stopped.
const EVENTS_AT_ONCE: u64 = 1 << 16;

/// Counts of the whole search.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub decided: AtomicU64,
    pub failing: AtomicU64,
    pub runs: AtomicU64,
    /// Spent on crashes in the set-up, by all workers, in microseconds.
    setup: AtomicU64,
    /// At crash points at which a run hung, likewise.
    hangs: AtomicU64,
    /// Their failure points.
    hanging: Mutex<FxHashSet<FailurePoint>>,
    /// Points that were put off for it, each with its stage.
    put_off: Mutex<Vec<(usize, Pick)>>,
}

/// Whether a search is at what it has put off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Points at which runs hang are put off when they have had their share.
    First,
    PutOff,
}

impl Totals {
    /// What a stage has put off; from then on it has put off nothing.
    pub fn put_off(&self, stage: usize) -> Vec<Pick> {
        let mut all = self.put_off.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.iter().filter(|(of, _)| *of == stage).map(|(_, pick)| *pick).collect();
        all.retain(|(of, _)| *of != stage);
        own
    }

    fn hanging(&self) -> MutexGuard<'_, FxHashSet<FailurePoint>> {
        self.hanging.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the workers of a stage share.
pub(crate) struct Shared<'s> {
    search: &'s Search<'s>,
    stage: &'s Stage,
    picks: &'s [Pick],
    done: AtomicU64,
    /// A worker has met an error: the others need not go on.
    failed: AtomicBool,
    knowledge: &'s Knowledge,
    outcomes: Mutex<Vec<PointOutcome>>,
    totals: &'s Totals,
    place: Progress,
    begun: Instant,
    workers: u64,
    pub turn: Turn,
}

impl<'s> Shared<'s> {
    pub fn new(
        search: &'s Search<'s>,
        stage: &'s Stage,
        picks: &'s [Pick],
        knowledge: &'s Knowledge,
        totals: &'s Totals,
        place: Progress,
        workers: usize,
    ) -> Self {
        let (done, failed, outcomes) = Default::default();
        let (begun, workers) = (Instant::now(), workers as u64);
        let turn = Turn::First;
        Shared { search, stage, picks, done, failed, knowledge, outcomes, totals, place, begun, workers, turn }
    }

    pub fn into_outcomes(self) -> Vec<PointOutcome> {
        self.outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_stopped(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.search.is_stopped(self.totals)
    }

    /// A bug in the set-up fails nearly everywhere, and would leave no time for the operations.
    fn setup_had_its_share(&self) -> bool {
        self.had(&self.totals.setup, SETUP_SHARE)
    }

    /// Where one run hangs, the next one is likely to hang as well, and the time for others goes by.
    fn hangs_had_their_share(&self, point: &Point) -> bool {
        self.had(&self.totals.hangs, HANG_SHARE) && self.totals.hanging().contains(&point.key)
    }

    fn put_off(&self, pick: Pick) {
        let mut all = self.totals.put_off.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((self.place.stage, pick));
    }

    /// Has this been more than its share of the time?
    fn had(&self, taken: &AtomicU64, share: u64) -> bool {
        let Some(deadline) = self.search.budget.deadline else { return false };
        let time = deadline.saturating_duration_since(self.begun).as_micros() as u64;
        is_more_than(taken.load(Ordering::Relaxed), share, time, self.workers)
    }

    fn show_progress(&self) {
        (self.search.on_progress)(&Progress {
            points_done: self.done.load(Ordering::Relaxed),
            points: self.picks.len() as u64,
            states_decided: self.totals.decided.load(Ordering::Relaxed),
            states_failing: self.totals.failing.load(Ordering::Relaxed),
            recovery_runs: self.totals.runs.load(Ordering::Relaxed),
            ..self.place
        });
    }

    pub fn finish(&self, outcome: PointOutcome) -> Result<(), SearchError> {
        let noted = outcome.finished && self.search.again.is_none() && self.search.assumed.is_empty();
        if let Some(journal) = self.search.journal.filter(|_| noted) {
            journal.add(&outcome)?;
        }
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        self.done.fetch_add(1, Ordering::Relaxed);
        self.show_progress();
        Ok(())
    }
}

/// Is this more than a part of the time that so many workers have?
fn is_more_than(taken: u64, share: u64, time: u64, workers: u64) -> bool {
    taken > time / share * workers
}

/// A walk over the trace with a recovery of its own.
pub(crate) struct Worker<'r, R> {
    walk: Walk<'r>,
    cache: ReadTreeCache,
    recovery: R,
}

impl<'r, R: Recovery> Worker<'r, R> {
    pub fn new(walk: Walk<'r>, recovery: R) -> Self {
        Worker { walk, cache: ReadTreeCache::default(), recovery }
    }

    /// With another walk over the same trace.
    pub fn start_over(&mut self, walk: Walk<'r>) {
        self.walk = walk;
        self.cache = ReadTreeCache::default();
    }

    pub fn recovery(&mut self) -> &mut R {
        &mut self.recovery
    }

    /// Judges a point of the stage. None: it is left out, since crashes in the set-up have had their share, put off, since hangs have, or all is
    /// stopped.
    pub fn point(&mut self, shared: &Shared<'_>, pick: Pick) -> Result<Option<PointOutcome>, SearchError> {
        self.go(shared, pick).inspect_err(|_| shared.failed.store(true, Ordering::Relaxed))
    }

    fn go(&mut self, shared: &Shared<'_>, pick: Pick) -> Result<Option<PointOutcome>, SearchError> {
        let point = shared.search.survey.point(pick);
        let in_setup = shared.search.setup_end.is_some_and(|end| point.at < end);
        if in_setup && shared.setup_had_its_share() {
            return Ok(None);
        }
        if shared.turn == Turn::First && shared.hangs_had_their_share(&point) {
            shared.put_off(pick);
            return Ok(None);
        }
        let begun = Instant::now();
        if point.at < self.walk.at() {
            // The stage before has left the walk behind this point.
            self.walk.rewind()?;
        }
        while self.walk.at() < point.at {
            if shared.is_stopped() {
                return Ok(None);
            }
            self.walk.advance_to(point.at.min(EventId(self.walk.at().0 + EVENTS_AT_ONCE)))?;
        }
        let outcome = self.judge(shared, &point)?;
        let took = begun.elapsed().as_micros() as u64;
        if in_setup {
            shared.totals.setup.fetch_add(took, Ordering::Relaxed);
        }
        if outcome.failing.iter().any(|failing| failing.verdict.is_endless()) {
            shared.totals.hangs.fetch_add(took, Ordering::Relaxed);
            shared.totals.hanging().insert(point.key);
        }
        Ok(Some(outcome))
    }

    fn judge(&mut self, shared: &Shared<'_>, point: &Point) -> Result<PointOutcome, SearchError> {
        let mut judge = Judge {
            knowledge: shared.knowledge,
            cache: &mut self.cache,
            recovery: &mut self.recovery,
            is_stopped: &|| shared.is_stopped(),
            on_decided: &|ran, failing| {
                shared.totals.decided.fetch_add(1, Ordering::Relaxed);
                shared.totals.failing.fetch_add(failing.into(), Ordering::Relaxed);
                if ran {
                    shared.totals.runs.fetch_add(1, Ordering::Relaxed);
                    shared.show_progress();
                }
            },
        };
        let task = Task {
            point,
            strategies: &shared.stage.strategies,
            earlier: &shared.stage.earlier,
            keep_failing: shared.search.options.keep_failing,
        };
        let judged = judge.judge(&self.walk.view(), task);
        judged.map_err(|source| SearchError::Recovery { at: point.at, source })
    }
}

/// A worker at a stage. Points are taken in order, so that no walk has to go back.
pub(crate) struct AtStage<'w, 's, 'r, R> {
    pub worker: &'w mut Worker<'r, R>,
    pub shared: &'s Shared<'s>,
}

impl<R: Recovery> Work<Pick> for AtStage<'_, '_, '_, R> {
    type Done = Option<PointOutcome>;
    type Error = SearchError;

    fn work(&mut self, pick: &Pick) -> Result<Option<PointOutcome>, SearchError> {
        self.worker.point(self.shared, *pick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_has_its_share_of_the_time() {
        assert!(!is_more_than(0, HANG_SHARE, 0, 2), "nothing has been taken");
        assert!(!is_more_than(20, SETUP_SHARE, 100, 2) && is_more_than(21, SETUP_SHARE, 100, 2));
        assert!(!is_more_than(25, HANG_SHARE, 100, 1) && is_more_than(26, HANG_SHARE, 100, 1));
    }
}
