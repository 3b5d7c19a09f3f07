//! Search and analysis in turns: what is found is assumed to be repaired, so that it does not hide the rest.
//!
//! ```text
//!   broad search ──► causes ──► the failing points again, with their repairs assumed ──► causes … until nothing new fails
//!   deep search (with the repairs assumed) ──► causes ──► the failing points again …
//! ```
//! See `crash::assumed` for why everything that is found this way can happen to the program as it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cause::analyse::{Allowance, Analyser, Analysis};
use cause::assume::assume;
use cause::verdict_cache::VerdictCache;
use crash::assumed::AssumedRepairs;
use crash::elsewhere::Unjudged;
use crash::journal::Journal;
use crash::outcome::{Coverage, FailingState, PointOutcome, merge};
use crash::read_tree::{ReadTree, ReadTreeLimits};
use crash::search::{Budget, Found, Part, Progress, Search, coverage};
use crash::strategy::StrategySpec;
use crash::survey::Survey;
use finding::note::RunNote;
use runner::runner::Runner;
use rustc_hash::{FxHashMap, FxHashSet};
use trace::event::EventId;
use verdict::position::CrashPositions;

use crate::analysis_deadline::AnalysisDeadline;
use crate::representatives::representatives;
use crate::session::{CheckSession, Phase, SessionError};

/// When to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time<'a> {
    pub budget: Budget<'a>,
    /// For the analysis of failing states.
    pub analysis: Option<Instant>,
    /// Where the first operation begins.
    pub setup_end: Option<EventId>,
}

/// What all passes together have found.
#[derive(Debug)]
pub(crate) struct Searched {
    pub points: Vec<PointOutcome>,
    pub coverage: Coverage,
    pub notes: Vec<RunNote>,
    pub analysis: Analysis,
    /// Code whose stores were assumed to be durable.
    pub assumed: AssumedRepairs,
    /// A run is known to have read a line of a pool.
    pub reads_pools: bool,
}

/// Each pass assumes at least one more place in the code; a program with more bugs than this has had enough for one check.
const MOST_PASSES: usize = 64;

impl CheckSession<'_> {
    pub(crate) fn search_and_analyse(
        &self,
        survey: &Survey,
        runners: &mut [Runner],
        positions: &Arc<CrashPositions>,
        time: Time<'_>,
        assumed: AssumedRepairs,
        on_phase: &(dyn Fn(Phase) + Sync),
    ) -> Result<Searched, SessionError> {
        let journal = match self.journal.filter(|_| self.merge.is_empty()) {
            Some(path) => Some(Journal::open(path, self.reader, self.options)?),
            None => None,
        };
        let report = |progress: &Progress| on_phase(Phase::Search(*progress));
        let mut search = Search::new(self.reader, survey, self.options);
        search.shard = self.shard;
        search.equivalence = self.equivalence;
        search.budget = time.budget;
        search.setup_end = time.setup_end;
        search.positions = Arc::clone(positions);
        search.on_progress = &report;
        search.journal = journal.as_ref();
        search.assumed = Arc::new(assumed.clone());
        let tree = self.equivalence.then(|| ReadTree::new(ReadTreeLimits::default()));
        let mut memory = VerdictCache::new(tree, Arc::clone(positions));
        memory.assumed = Arc::clone(&search.assumed);
        // Never before the end of the search: what that finds must be looked into.
        let is_after = |end: &Instant| time.budget.deadline.is_none_or(|search| *end >= search);
        let with_hangs = self.analysis_with_hangs.filter(is_after);
        let mut passes = Passes {
            session: self,
            search,
            memory,
            analyser: Analyser::default(),
            assumed,
            points: Vec::new(),
            notes: Vec::new(),
            deadline: AnalysisDeadline::until(time.analysis, with_hangs),
            unseen: FxHashSet::default(),
            looked_at: FxHashMap::default(),
            left: Vec::new(),
            whole: time.budget.deadline,
            on_phase,
        };
        if self.merge.is_empty() {
            if let Some((fleet, trace)) = self.fleet {
                self.begin(fleet, trace)?;
            }
            passes.part(Part::Broad, runners, time.budget)?;
            passes.part(Part::Deep, runners, time.budget)?;
            passes.look_again(runners)?;
        } else {
            let merged = merge(Journal::read_all(self.merge, self.reader, self.options)?);
            passes.search.part = Part::All;
            passes.explain_in_slices(merged, runners)?;
        }
        let coverage = coverage(survey, self.options, self.shard, &passes.points);
        let reads_pools = passes.memory.has_reads();
        let Passes { analyser, assumed, points, notes, unseen, looked_at, .. } = passes;
        let mut analysis = analyser.finish();
        // Of their states, nobody looked at those that were put off.
        let never_again = points.iter().filter(|outcome| unseen.contains(&outcome.point.index));
        let put_off = |outcome: &PointOutcome| {
            let looked_at = looked_at.get(&outcome.point.index).copied().unwrap_or(0);
            (outcome.failing.len() as u64).saturating_sub(looked_at)
        };
        analysis.unexplained += never_again.map(put_off).sum::<u64>();
        Ok(Searched { points, coverage, notes, analysis, assumed, reads_pools })
    }
}

/// Half of the remaining time, or all if that is little.
#[derive(Clone, Copy, Debug)]
struct Slice {
    end: Option<Instant>,
    is_last: bool,
}

impl Slice {
    /// What is shorter is not worth the search for causes after it.
    const LEAST: Duration = Duration::from_secs(1);

    fn of(deadline: Option<Instant>) -> Slice {
        let now = Instant::now();
        let half = |deadline: Instant| deadline.saturating_duration_since(now) / 2;
        let cut = deadline.map(half).filter(|half| *half >= Slice::LEAST).map(|half| now + half);
        Slice { end: cut.or(deadline), is_last: cut.is_none() }
    }

    fn is_over(self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }
}

/// Of the time for the analysis, what states that hang may take at once.
const HANG_SHARE: u32 = 4;

/// States on which the run ended, and those on which it did not.
fn endless_apart(failing: &[PointOutcome]) -> (Vec<PointOutcome>, Vec<PointOutcome>) {
    let only = |endless: bool| {
        let outcomes = failing.iter().cloned().map(|mut outcome| {
            outcome.failing.retain(|state| state.verdict.is_endless() == endless);
            outcome
        });
        outcomes.filter(|outcome| !outcome.failing.is_empty()).collect()
    };
    (only(false), only(true))
}

struct Passes<'s, 'a> {
    session: &'s CheckSession<'a>,
    search: Search<'s>,
    memory: VerdictCache,
    analyser: Analyser,
    assumed: AssumedRepairs,
    points: Vec<PointOutcome>,
    notes: Vec<RunNote>,
    deadline: AnalysisDeadline,
    /// Failing points that are to be searched again, since more is known than when they were searched.
    unseen: FxHashSet<u64>,
    /// Of each failing point, how many states causes were looked for.
    looked_at: FxHashMap<u64, u64>,
    /// Failing states of which only some were analysed, and what was assumed then.
    left: Vec<(Arc<AssumedRepairs>, Vec<PointOutcome>)>,
    /// When the part that is under way must be over.
    whole: Option<Instant>,
    on_phase: &'s (dyn Fn(Phase) + Sync),
}

impl<'s> Passes<'s, '_> {
    /// Finds the causes of what other searches found.
    fn explain_in_slices(&mut self, mut found: Vec<PointOutcome>, runners: &mut [Runner]) -> Result<(), SessionError> {
        loop {
            let slice = Slice::of(self.whole);
            self.explain(std::mem::take(&mut found), runners)?;
            if slice.is_last || self.unseen.is_empty() || self.is_over(self.whole) {
                return Ok(());
            }
        }
    }

    /// One part of the search. Causes must be known before the time is over, since they make room for others: after half of the remaining time
    /// the causes so far are looked for, and so on.
    fn part(&mut self, part: Part, runners: &mut [Runner], budget: Budget<'s>) -> Result<(), SessionError> {
        self.search.part = part;
        self.whole = budget.deadline;
        loop {
            let slice = Slice::of(budget.deadline);
            self.search.budget = Budget { deadline: slice.end, ..budget };
            self.search.covered = self.points.iter().flat_map(PointOutcome::covers).collect();
            let search = self.search.clone();
            let found = self.run(&search, runners)?;
            let is_cut = slice.is_over();
            self.explain(found, runners)?;
            if slice.is_last || !is_cut && self.unseen.is_empty() || self.is_over(self.whole) {
                return Ok(());
            }
        }
    }

    fn run(&mut self, search: &Search<'_>, runners: &mut [Runner]) -> Result<Vec<PointOutcome>, SessionError> {
        let read_tree = self.memory.take_tree();
        let Found { points, contradiction, read_tree, .. } = match self.session.fleet {
            None => search.run_knowing(runners, read_tree)?,
            Some((fleet, _)) => {
                let (found, unjudged) = self.session.run_elsewhere(fleet, search, &mut runners[0], read_tree)?;
                self.notes.extend(unjudged.into_iter().map(|Unjudged { points, why }| RunNote::PointsSetAside {
                    points,
                    lost: why.lost,
                    failures: why.failures,
                }));
                found
            }
        };
        self.memory.put_tree(read_tree);
        self.notes
            .extend(contradiction.map(|how| RunNote::NotDeterministic { how, all_run: !self.session.equivalence }));
        Ok(points)
    }

    /// Finds the causes of what failed, and searches the failing points again as if they were repaired, until nothing new is found. The part goes
    /// on after that, so searching again ends after half of the remaining time.
    fn explain(&mut self, found: Vec<PointOutcome>, runners: &mut [Runner]) -> Result<(), SessionError> {
        let end = Slice::of(self.whole).end;
        let is_failing = |outcome: &PointOutcome| !outcome.failing.is_empty();
        let mut failing: Vec<PointOutcome> = found.iter().filter(|outcome| is_failing(outcome)).cloned().collect();
        self.points = merge(std::mem::take(&mut self.points).into_iter().chain(found));
        if representatives(&failing).is_some() {
            self.left.push((Arc::clone(&self.search.assumed), failing.clone()));
        }
        for _ in 0..MOST_PASSES {
            for outcome in &failing {
                self.looked_at.remove(&outcome.point.index);
            }
            // A run that hangs takes as long as many others.
            let (ended, endless) = endless_apart(&failing);
            let one = self.learn_from(&ended, None, runners)?;
            let other = self.learn_from(&endless, Some(HANG_SHARE), runners)?;
            if self.forgive(&failing, runners, end)? || one || other {
                self.unseen.extend(failing.iter().map(|outcome| outcome.point.index));
            }
            if self.unseen.is_empty() || self.is_over(end) {
                break;
            }
            self.search.assumed = Arc::new(self.assumed.clone());
            self.memory.assumed = Arc::clone(&self.search.assumed);
            let again = std::mem::take(&mut self.unseen);
            let budget = Budget { deadline: Slice::of(end).end, ..self.search.budget };
            let search = Search { again: Some(&again), budget, ..self.search.clone() };
            let found = self.run(&search, runners)?;
            for outcome in &found {
                let place = self.points.binary_search_by_key(&outcome.point.index, |own| own.point.index);
                if let Ok(place) = place {
                    self.points[place].searched_again(outcome);
                }
            }
            if self.is_over(budget.deadline) {
                let seen: FxHashSet<u64> = found.iter().map(|outcome| outcome.point.index).collect();
                self.unseen = again.difference(&seen).copied().collect();
            }
            failing = found.into_iter().filter(is_failing).collect();
        }
        Ok(())
    }

    /// Uses half of the remaining time to look at all failing states of which a few were analysed. What was assumed because of these may hide others: two
    /// bugs of one line of code.
    fn look_again(&mut self, runners: &mut [Runner]) -> Result<(), SessionError> {
        // Other things follow.
        let end = Slice::of(self.whole).end;
        for (assumed, failing) in std::mem::take(&mut self.left) {
            let (mut ended, _) = endless_apart(&failing);
            // Where everything fails, what is wrong in any case is known, and its answers are forgiven.
            let in_order = |state: &FailingState| state.strategy == StrategySpec::ProgramOrder;
            ended.retain(|outcome| !outcome.failing.iter().any(in_order));
            if self.is_over(end) {
                break;
            }
            self.memory.assumed = assumed;
            self.learn(&ended, end, runners)?;
        }
        Ok(())
    }

    /// Finds the causes of these states: of a few of each kind first, and of all if these show nothing new. `share` is the part of the remaining
    /// time that it may take. Was there anything to assume?
    fn learn_from(
        &mut self,
        failing: &[PointOutcome],
        share: Option<u32>,
        runners: &mut [Runner],
    ) -> Result<bool, SessionError> {
        let now = Instant::now();
        let part = |(share, end): (u32, Instant)| now + end.saturating_duration_since(now) / share;
        let end = share.zip(self.deadline.end()).map(part);
        let few_show_something = match representatives(failing) {
            Some(some) => self.learn(&some, end, runners)?,
            None => false,
        };
        Ok(few_show_something || self.learn(failing, end, runners)?)
    }

    /// Finds the causes of what failed, and assumes that they are repaired; was there anything to assume?
    fn learn(
        &mut self,
        failing: &[PointOutcome],
        end: Option<Instant>,
        runners: &mut [Runner],
    ) -> Result<bool, SessionError> {
        if failing.is_empty() {
            return Ok(false);
        }
        let known = self.analyser.causes().len();
        for outcome in failing {
            *self.looked_at.entry(outcome.point.index).or_default() += outcome.failing.len() as u64;
        }
        self.analyse(failing, end, runners)?;
        let causes = &self.analyser.causes()[known..];
        if causes.iter().any(|cause| cause.verdict.is_endless()) {
            self.deadline.hangs();
        }
        Ok(assume(self.session.reader, causes, self.session.libraries, &mut self.assumed)?)
    }

    /// See [`crate::forgive`].
    fn forgive(
        &mut self,
        failing: &[PointOutcome],
        runners: &mut [Runner],
        end: Option<Instant>,
    ) -> Result<bool, SessionError> {
        let mut positions = Arc::clone(&self.search.positions);
        let is_over = || self.is_over(end);
        let is_new = self.session.forgive(failing, runners, &mut positions, &is_over)?;
        self.search.positions = Arc::clone(&positions);
        self.memory.positions = positions;
        Ok(is_new)
    }

    fn analyse(
        &mut self,
        failing: &[PointOutcome],
        end: Option<Instant>,
        runners: &mut [Runner],
    ) -> Result<(), SessionError> {
        let states: u64 = failing.iter().map(PointOutcome::failing_states).sum();
        let (on_phase, deadline, session) = (self.on_phase, &self.deadline, self.session);
        let is_over = || {
            on_phase(Phase::Analyse(states));
            let now = Instant::now();
            deadline.is_over(now, session.is_stopped()) || end.is_some_and(|end| now >= end)
        };
        let allowance = Allowance { is_over: &is_over, ..Allowance::default() };
        if let Some((fleet, _)) = session.fleet {
            let search = Search { assumed: Arc::clone(&self.memory.assumed), ..self.search.clone() };
            session.look_ahead_elsewhere(fleet, &search, failing, &mut runners[0], &mut self.memory, &is_over)?;
        }
        let rules = self.session.options.rules;
        self.analyser.take(self.session.reader, rules, failing, &mut self.memory, runners, allowance)?;
        Ok(())
    }

    fn is_over(&self, end: Option<Instant>) -> bool {
        self.session.is_stopped() || end.is_some_and(|end| Instant::now() >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_half_of_what_is_left_until_that_is_little() {
        let now = Instant::now();
        let slice = Slice::of(Some(now + Duration::from_secs(600)));
        let end = slice.end.expect("there is a deadline");
        assert!(!slice.is_last && !slice.is_over());
        assert!(end >= now + Duration::from_secs(200) && end <= now + Duration::from_secs(301));
        let little = now + Duration::from_millis(1500);
        let last = Slice::of(Some(little));
        assert_eq!((last.end, last.is_last), (Some(little), true));
        let all = Slice::of(None);
        assert!(all.end.is_none() && all.is_last && !all.is_over());
        assert!(Slice::of(Some(now)).is_over());
    }
}
