//! The search for failing crash states of a recording: settings become a session, and the user's wish to stop ends it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crash::rounds::Shard;
use crash::search::Budget;
use crash::strategy::StrategySpec;
use crash::strategy::inferred::KnownConditions;
use drive::driver::Driver;
use finding::blame::Libraries;
use finding::finding::Location;
use infer::{Conditions, ConditionsError};
use record::stop::StopRequest;
use runner::plan::ServedTree;
use trace::{ReadError, TraceReader};

use crate::again::AgainShare;
use crate::checked::Checked;
use crate::code_path::Environment;
use crate::elsewhere::Fleet;
use crate::operations::Operations;
use crate::session::{CheckSession, Phase, SessionError};
use crate::settings::{Settings, SettingsError};
use crate::stopping::until_stopped;

/// Trees are compared, so nothing of one may be missing.
const TREE_BYTES: u64 = 16 << 20;

/// A search on a recording.
#[derive(Debug)]
pub struct Search<'a> {
    pub reader: &'a TraceReader,
    /// The file that the reader reads: what was inferred lies beside it.
    pub trace: &'a Path,
    pub settings: &'a Settings,
    pub operations: Option<&'a Operations>,
    /// That of recoveries and checkers.
    pub env: &'a Environment,
    /// Code that is not blamed.
    pub libraries: &'a Libraries,
    pub shard: Shard,
    /// Where decided crash points are noted, to go on from.
    pub journal: Option<PathBuf>,
    /// Journals of other searches to put together instead of searching.
    pub merge: &'a [PathBuf],
    /// What the program answered to its operations while it was recorded.
    pub recorded: Option<Vec<u8>>,
    /// A file system's daemon, and how to judge what it serves.
    pub served: Option<ServedTree>,
    /// Recoveries see the clock of the machine, as the recorded program did.
    pub real_time: bool,
    /// Other machines that judge crash points; none: this one does.
    pub fleet: Option<&'a Fleet>,
    /// Code whose bugs are known from another recording: it is taken to be repaired.
    pub repaired: &'a [Location],
    /// What was inferred; none: what lies beside the trace.
    pub conditions: Option<KnownConditions>,
    /// The budget counts from here on.
    pub since: Instant,
}

/// When a search with a budget must be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Deadlines {
    /// No more states are tested, nor right answers looked for.
    search: Instant,
    analysis: Instant,
    /// Somewhat earlier, if that makes room to confirm a hang.
    with_hangs: Option<Instant>,
    /// Runs that are still under way are ended: a quarter of the budget and 5 s after it there must be a result, and it takes a moment to write.
    runs: Instant,
}

impl Deadlines {
    /// What is confirmed before a hang takes this long, about.
    const OTHERS: Duration = Duration::from_secs(2);

    /// A run that hangs takes `timeout`.
    fn of(since: Instant, budget: Duration, timeout: Duration) -> Deadlines {
        let search = since + budget;
        let runs = search + budget / 5 + Duration::from_secs(3);
        let with_hangs = runs.checked_sub(timeout + Deadlines::OTHERS).filter(|end| *end >= search);
        Deadlines { search, analysis: search + budget / 16 + Duration::from_secs(1), with_hangs, runs }
    }
}

/// Nothing could be searched.
#[derive(Debug, thiserror::Error)]
pub enum SearchFailed {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the trace has no pool: there is nothing to crash")]
    NoPool,
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Conditions(#[from] ConditionsError),
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl Search<'_> {
    /// A check with default strategies does a little of it unasked.
    fn again(&self) -> AgainShare {
        let is_check = self.journal.is_none() && self.shard == Shard::WHOLE && self.merge.is_empty();
        match self.settings.again {
            true => AgainShare::Whole,
            false if is_check && self.served.is_none() && self.settings.strategies.is_none() => AgainShare::Little,
            false => AgainShare::None,
        }
    }

    /// What was found, and whether `stop` ended it early.
    pub fn run(&self, stop: &StopRequest, on_phase: &(dyn Fn(Phase) + Sync)) -> Result<(Checked, bool), SearchFailed> {
        let reader = self.reader;
        reader.undamaged()?;
        if reader.tables().pools.is_empty() {
            return Err(SearchFailed::NoPool);
        }
        let mut plan = self.settings.plan(reader, self.operations, self.env, self.recorded.clone())?;
        plan.real_time = self.real_time;
        if let Some(served) = &self.served {
            plan.recovery = served.daemon.clone();
            plan.served = Some(served.clone());
            plan.limits.output = TREE_BYTES;
        }
        // A recording that nobody inferred conditions from is searched without.
        let with_conditions = self.conditions.is_some() || infer::beside(self.trace).exists();
        let strategies = self.settings.strategies(self.operations, with_conditions);
        let needs_conditions = strategies.iter().copied().any(StrategySpec::needs_conditions);
        let mut options = self.settings.search_options(&plan, strategies);
        if needs_conditions {
            options.conditions = Some(match &self.conditions {
                Some(known) => known.clone(),
                None => KnownConditions::new(Conditions::load(&infer::beside(self.trace))?),
            });
        }
        let stopped = AtomicBool::new(false);
        let deadlines = self.settings.budget.map(|budget| Deadlines::of(self.since, budget, plan.limits.wall));
        let search_deadline = deadlines.map(|deadlines| deadlines.search);
        let session = CheckSession {
            reader,
            plan: &plan,
            expectation: &self.settings.expectation(),
            options: &options,
            fleet: self.fleet.map(|fleet| (fleet, self.trace)),
            shard: self.shard,
            equivalence: self.settings.equivalence,
            workers: if self.fleet.is_some() { 1 } else { self.settings.workers(reader) },
            budget: Budget { stop: Some(&stopped), deadline: search_deadline, ..Budget::default() },
            analysis_deadline: deadlines.map(|deadlines| deadlines.analysis),
            analysis_with_hangs: deadlines.and_then(|deadlines| deadlines.with_hangs),
            reference_deadline: search_deadline,
            journal: self.journal.as_deref(),
            merge: self.merge,
            again: self.again(),
            judged_as: None,
            skip_operations: self.settings.skip_operations,
            recovery_from: None,
            bundles: &self.settings.bundles,
            bundles_option: self.settings.bundles_option(),
            libraries: self.libraries,
            repaired: self.repaired,
        };
        let checked = until_stopped(stop, &stopped, &plan.cancel, deadlines.map(|deadlines| deadlines.runs), || {
            session.run(on_phase)
        });
        let driven = Driver::of(&reader.tables().meta.command).is_some();
        let checked = checked.map_err(|error| match error {
            // The driver reads the operations, so it is not the program that did not.
            SessionError::Reference(error) if driven => SessionError::Reference(error.driven()),
            error => error,
        })?;
        Ok((checked, stopped.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some of the promised time is left to write the result.
    #[test]
    fn there_is_a_result_a_quarter_of_the_budget_and_five_seconds_after_it() {
        let since = Instant::now();
        for seconds in [1, 20, 60, 3600] {
            let budget = Duration::from_secs(seconds);
            let timeout = Duration::from_secs(10);
            let Deadlines { search, analysis, with_hangs, runs } = Deadlines::of(since, budget, timeout);
            assert!(with_hangs.is_none_or(|end| search <= end && end + timeout < runs));
            assert_eq!(with_hangs.is_some(), seconds >= 60, "less leaves no room for one");
            assert!(search == since + budget && search < analysis && analysis <= runs);
            assert!(runs + Duration::from_secs(2) <= since + budget + budget / 4 + Duration::from_secs(5));
        }
    }
}
