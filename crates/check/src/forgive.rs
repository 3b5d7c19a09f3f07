//! Answers that a known bug spoils, and that the search no longer looks at.
//!
//! Where recovery fails although everything is in PM (a crash came between two stores that belong together), every state of the crash point
//! fails, and tells nothing about other bugs. No flush would repair that, so there is nothing to assume about stores. But the answers that are
//! wrong there are known: what other bugs do to the *other* answers shows, once these are left out. This only lets states pass. Whatever
//! still fails does so on the program as it is.
//!
//! *Can be missed*: what shows in the same answers after a crash in the same operation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crash::assignment::Assignment;
use crash::outcome::PointOutcome;
use crash::strategy::StrategySpec;
use runner::runner::Runner;
use verdict::position::CrashPositions;

use crate::session::{CheckSession, SessionError};

impl CheckSession<'_> {
    /// Forgives the answers that are wrong in program order at these points. Returns whether that is anything new.
    pub(crate) fn forgive(
        &self,
        failing: &[PointOutcome],
        runners: &mut [Runner],
        positions: &mut Arc<CrashPositions>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<bool, SessionError> {
        let Some(equivalence) = runners[0].equivalence.clone() else { return Ok(false) };
        let in_order = |outcome: &&PointOutcome| {
            outcome.failing.iter().any(|failing| failing.strategy == StrategySpec::ProgramOrder)
        };
        let mut wrong: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        let mut renewed = CrashPositions::clone(positions);
        let mut walk = crash::walk::Walk::new(self.reader, self.options.rules)?;
        for outcome in failing.iter().filter(in_order) {
            if is_over() {
                break;
            }
            walk.advance_to(outcome.point.at)?;
            let view = walk.view();
            let image = view.image(&Assignment::everything(&view).state(&view))?;
            let position = equivalence.position(outcome.point.at);
            runners[0].observe(&image)?;
            let answers = runners[0].last().and_then(|run| equivalence.wrong_answers(position, run));
            let known = equivalence.forgiven.get(&position.number());
            let is_new = |at: &usize| known.is_none_or(|known| !known.contains(at));
            let new: Vec<usize> = answers.into_iter().flatten().filter(is_new).collect();
            if !new.is_empty() {
                wrong.entry(position.number()).or_default().extend(new);
                renewed.renew(outcome.point.at);
            }
        }
        if wrong.is_empty() {
            return Ok(false);
        }
        let mut forgiving = (*equivalence).clone();
        for (position, answers) in wrong {
            forgiving.forgiven.entry(position).or_default().extend(answers);
        }
        let forgiving = Arc::new(forgiving);
        runners.iter_mut().for_each(|runner| runner.equivalence = Some(Arc::clone(&forgiving)));
        *positions = Arc::new(renewed);
        Ok(true)
    }
}
