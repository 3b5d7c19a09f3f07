//! Search and analysis in turns: what is found is assumed to be repaired, so that it does not hide the rest.
//!
//! ```text
//!   broad search ──► causes ──► the failing points again, with their repairs assumed ──► causes … until nothing new fails
//!   deep search (with the repairs assumed) ──► causes ──► the failing points again …
//! ```
//! See `crash::assumed` for why everything that is found this way can happen to the program as it is.

use std::sync::Arc;
use std::time::Instant;

use cause::analyse::{Allowance, Analyser, Analysis};
use cause::assume::assume;
use cause::verdict_cache::VerdictCache;
use crash::assumed::AssumedRepairs;
use crash::elsewhere::Unjudged;
use crash::journal::Journal;
use crash::outcome::{Coverage, PointOutcome, merge};
use crash::read_tree::{ReadTree, ReadTreeLimits};
use crash::search::{Budget, Found, Part, Progress, Search, coverage};
use crash::survey::Survey;
use finding::note::RunNote;
use runner::runner::Runner;
use rustc_hash::FxHashSet;
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
        let mut passes = Passes {
            session: self,
            search,
            memory,
            analyser: Analyser::default(),
            assumed,
            points: Vec::new(),
            notes: Vec::new(),
            deadline: AnalysisDeadline::until(time.analysis),
            left: 0,
            on_phase,
        };
        if self.merge.is_empty() {
            if let Some((fleet, trace)) = self.fleet {
                self.begin(fleet, trace)?;
            }
            passes.broad(runners, time.budget)?;
            passes.part(Part::Deep, runners, time.budget)?;
        } else {
            let merged = merge(Journal::read_all(self.merge, self.reader, self.options)?);
            passes.explain(Part::All, merged, runners)?;
        }
        let coverage = coverage(survey, self.options, self.shard, &passes.points);
        let reads_pools = passes.memory.has_reads();
        let Passes { analyser, assumed, points, notes, left, .. } = passes;
        let mut analysis = analyser.finish();
        analysis.unexplained += left;
        Ok(Searched { points, coverage, notes, analysis, assumed, reads_pools })
    }
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
    /// Failing states that were put off, and for which there was no time.
    left: u64,
    on_phase: &'s (dyn Fn(Phase) + Sync),
}

impl<'s> Passes<'s, '_> {
    /// Few states per point. Causes must be known before the time is over, since they make room for others: after half of it the causes
    /// so far are looked for.
    fn broad(&mut self, runners: &mut [Runner], budget: Budget<'s>) -> Result<(), SessionError> {
        let now = Instant::now();
        let half = |deadline: Instant| now + deadline.saturating_duration_since(now) / 2;
        self.part(Part::Broad, runners, Budget { deadline: budget.deadline.map(half), ..budget })?;
        if budget.deadline.is_some_and(|deadline| half(deadline) <= Instant::now()) {
            self.part(Part::Broad, runners, budget)?;
        }
        Ok(())
    }

    /// One part of the search over all points that it has not covered, and the causes of what fails.
    fn part(&mut self, part: Part, runners: &mut [Runner], budget: Budget<'s>) -> Result<(), SessionError> {
        self.search.budget = budget;
        self.search.part = part;
        self.search.covered = self.points.iter().flat_map(PointOutcome::covers).collect();
        let search = self.search.clone();
        let found = self.run(&search, runners)?;
        self.explain(part, found, runners)
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

    /// Finds the causes of what failed, and searches the failing points again as if they were repaired, until nothing new is found.
    fn explain(&mut self, part: Part, found: Vec<PointOutcome>, runners: &mut [Runner]) -> Result<(), SessionError> {
        let is_failing = |outcome: &PointOutcome| !outcome.failing.is_empty();
        let mut failing: Vec<PointOutcome> = found.iter().filter(|outcome| is_failing(outcome)).cloned().collect();
        self.points = merge(std::mem::take(&mut self.points).into_iter().chain(found));
        for _ in 0..MOST_PASSES {
            if failing.is_empty() {
                break;
            }
            let some = representatives(&failing);
            let mut is_new = self.learn(some.as_ref().unwrap_or(&failing), runners)?;
            if some.is_some() && !is_new {
                is_new = self.learn(&failing, runners)?;
            }
            let is_new = self.forgive(&failing, runners)? || is_new;
            if !is_new || self.is_over() {
                // After those that were looked at first, nobody looked at the others.
                let count = |outcomes: &[PointOutcome]| outcomes.iter().map(|it| it.failing.len() as u64).sum::<u64>();
                self.left += some.filter(|_| is_new).map_or(0, |some| count(&failing) - count(&some));
                break;
            }
            self.search.assumed = Arc::new(self.assumed.clone());
            self.memory.assumed = Arc::clone(&self.search.assumed);
            let again: FxHashSet<u64> = failing.iter().map(|outcome| outcome.point.index).collect();
            let search = Search { again: Some(&again), part, ..self.search.clone() };
            let found = self.run(&search, runners)?;
            for outcome in &found {
                let place = self.points.binary_search_by_key(&outcome.point.index, |own| own.point.index);
                if let Ok(place) = place {
                    self.points[place].searched_again(outcome);
                }
            }
            failing = found.into_iter().filter(is_failing).collect();
        }
        Ok(())
    }

    /// Finds the causes of what failed, and assumes that they are repaired; was there anything to assume?
    fn learn(&mut self, failing: &[PointOutcome], runners: &mut [Runner]) -> Result<bool, SessionError> {
        let known = self.analyser.causes().len();
        self.analyse(failing, runners)?;
        let causes = &self.analyser.causes()[known..];
        Ok(assume(self.session.reader, causes, self.session.libraries, &mut self.assumed)?)
    }

    /// See [`crate::forgive`].
    fn forgive(&mut self, failing: &[PointOutcome], runners: &mut [Runner]) -> Result<bool, SessionError> {
        let mut positions = Arc::clone(&self.search.positions);
        let is_over = || self.is_over();
        let is_new = self.session.forgive(failing, runners, &mut positions, &is_over)?;
        self.search.positions = Arc::clone(&positions);
        self.memory.positions = positions;
        Ok(is_new)
    }

    fn analyse(&mut self, failing: &[PointOutcome], runners: &mut [Runner]) -> Result<(), SessionError> {
        let states: u64 = failing.iter().map(PointOutcome::failing_states).sum();
        let (on_phase, deadline, session) = (self.on_phase, &self.deadline, self.session);
        let is_over = || {
            on_phase(Phase::Analyse(states));
            deadline.is_over(Instant::now(), session.is_stopped())
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

    fn is_over(&self) -> bool {
        self.session.is_stopped() || self.search.budget.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}
