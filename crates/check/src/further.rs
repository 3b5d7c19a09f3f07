//! Uses the time that remains after a default search: the same crashes, with more operations after them.
//! (And those that are possible only if locked instructions are no fences: [`crate::locked`].)

use std::sync::Arc;
use std::time::Instant;

use crash::assumed::AssumedRepairs;
use crash::outcome::PointOutcome;
use crash::rounds::Selection;
use crash::search::SearchOptions;
use crash::strategy::StrategySpec;
use crash::survey::Survey;
use finding::evidence::Evidence;
use finding::finding::{Class, Finding};
use finding::merge::same_place;
use finding::note::RunNote;
use operation::equivalence::{Asking, Equivalence};
use runner::plan::OperationPlan;
use runner::reference::run::reference_answers;
use runner::runner::Runner;
use rustc_hash::FxHashSet;
use trace::event::EventId;
use verdict::position::CrashPositions;

use crate::passes::Time;
use crate::session::{CheckSession, Phase, SessionError};

/// Occurrences of each failure point that are looked at again.
const OCCURRENCES: u64 = 4;
/// States that differ little from one that is quick to name.
pub(crate) const NEAR: StrategySpec = StrategySpec::FewLines { lines: 1, cap: 64 };

/// What the search has found, and what is added to it.
#[derive(Debug)]
pub(crate) struct Further<'s> {
    pub survey: &'s Survey,
    pub positions: &'s Arc<CrashPositions>,
    pub time: Time<'s>,
    pub assumed: &'s AssumedRepairs,
    pub points: &'s [PointOutcome],
    pub findings: Vec<Finding>,
    pub evidence: Vec<Evidence>,
    pub notes: Vec<RunNote>,
}

impl Further<'_> {
    /// The crash points at which nothing has failed, as far as they are wanted.
    pub fn passed(&self, is_wanted: impl Fn(EventId) -> bool) -> Survey {
        let failing = self.points.iter().filter(|outcome| !outcome.failing.is_empty());
        let failing: FxHashSet<EventId> = failing.map(|outcome| outcome.point.at).collect();
        let mut survey = self.survey.clone();
        survey.keep(|at| !failing.contains(&at) && is_wanted(at));
        survey
    }

    /// Is it about something that no finding is about?
    pub fn is_new(&self, finding: &Finding) -> bool {
        let is_same = |known: &Finding| {
            let torn = [known, finding].iter().all(|finding| finding.class == Class::Atomicity);
            same_place(known.guilty(), finding.guilty()) || torn && known.guilty().function == finding.guilty().function
        };
        !self.findings.iter().any(is_same)
    }

    pub fn add(&mut self, (findings, evidence): (Vec<Finding>, Vec<Evidence>)) {
        self.findings.extend(findings);
        self.evidence.extend(evidence);
    }
}

impl CheckSession<'_> {
    /// Bugs that show late: recovered processes are asked twice as many operations, and twice as many again, as long as there is time.
    pub(crate) fn longer(
        &self,
        further: &mut Further<'_>,
        runners: &mut [Runner],
        on_phase: &(dyn Fn(Phase) + Sync),
    ) -> Result<(), SessionError> {
        let known = runners[0].equivalence.clone().filter(|known| known.asking == Asking::Fed);
        let (Some(operations), Some(known)) = (&self.plan.operations, known) else { return Ok(()) };
        let count = operations.workload.count();
        if operations.workload.next_window(0) < count || runners[0].refused.is_some() {
            return Ok(());
        }
        // What comes after this has its time, too.
        let now = Instant::now();
        let end = further.time.budget.deadline.map(|end| now + end.saturating_duration_since(now) / 2);
        let is_over = || self.is_stopped() || end.is_some_and(|end| Instant::now() >= end);
        let options = SearchOptions {
            selection: Selection { occurrences: Some(OCCURRENCES), ..self.options.selection },
            strategies: vec![StrategySpec::ProgramOrder, StrategySpec::GuaranteedOnly, NEAR],
            conditions: None,
            ..self.options.clone()
        };
        let session = CheckSession { options: &options, bundles_option: self.bundles_option.clone(), ..*self };
        let survey = further.passed(|_| true);
        let mut time = further.time;
        time.budget.deadline = end;
        let mut after = operations.operations_after;
        while after > 0 && after < count && !is_over() {
            after *= 2;
            let plan = OperationPlan { operations_after: after, ..OperationPlan::clone(operations) };
            let goes_on = |_: usize| !is_over();
            let reference = reference_answers(self.reader, options.rules, &plan, &mut runners[0], &goes_on);
            // It went well with fewer operations after the crash: what keeps it from going well now is want of time.
            let Ok(reference) = reference else { break };
            ask(runners, &Arc::new(reference.equivalence));
            let assumed = further.assumed.clone();
            let found = session.search_and_analyse(&survey, runners, further.positions, time, assumed, on_phase)?;
            let mut notes = std::mem::take(&mut further.notes);
            let is_new = |finding: &mut Finding| further.is_new(finding);
            let confirmed = session.confirmed_as(&found.analysis.causes, runners, &mut notes, &is_new)?;
            further.notes = notes;
            further.add(confirmed);
        }
        ask(runners, &known);
        Ok(())
    }
}

/// From now on recovered processes are asked this.
fn ask(runners: &mut [Runner], equivalence: &Arc<Equivalence>) {
    runners.iter_mut().for_each(|runner| runner.equivalence = Some(Arc::clone(equivalence)));
}
