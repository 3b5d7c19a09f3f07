//! What the complete run acknowledged is not there after the pools are opened again, without any power failure: a transaction that was
//! never ended, data that was only in DRAM. No crash state can be judged then; the loss itself is the finding.

use cause::analyse::RootCause;
use cause::store_history::last_store_before;
use crash::assignment::Assignment;
use crash::outcome::Coverage;
use crash::points::{FailurePoint, Point, PointKind};
use crash::search::coverage;
use crash::survey::Survey;
use crash::walk::Walk;
use finding::finding::{Class, FindingId, Title};
use finding::note::RunNote;
use runner::runner::Runner;
use trace::event::EventId;
use verdict::symptom::Symptom;
use verdict::verdict::Verdict;

use crate::checked::Checked;
use crate::session::{CheckSession, SessionError};

/// Its rule; `fencepost explain` has a page on it.
const RULE: &str = "FP0605";
const TITLE: &str = "what the complete run acknowledged is not there after reopening, without any power failure";

impl CheckSession<'_> {
    pub(crate) fn lost_without_crash(
        &self,
        survey: &Survey,
        symptom: Symptom,
        runner: &mut Runner,
        mut notes: Vec<RunNote>,
    ) -> Result<Checked, SessionError> {
        let at = EventId(self.reader.event_count());
        let last = last_store_before(self.reader, at)?;
        let Some(store) = last else { return Err(SessionError::NeverRecovers(Box::new(symptom))) };
        let mut walk = Walk::new(self.reader, self.options.rules)?;
        walk.advance_to(at)?;
        let view = walk.view();
        let key = FailurePoint { context: store.site.context, pc: store.site.pc, kind: PointKind::EndOfTrace };
        let cause = RootCause {
            // Found where stores that belong together are: the last one is all that can be named.
            class: Class::Atomicity,
            missing: Vec::new(),
            present: vec![store],
            program_order_is_wrong: false,
            completes: cause::classify::Completes::Unknown,
            in_program_order: true,
            by_accident: false,
            point: Point { index: survey.len(), at, key, occurrence: 1 },
            state: Assignment::everything(&view).state(&view),
            verdict: Verdict::fail(symptom.clone()),
            repair: None,
            flushed_at: None,
            explains: 1,
            points: vec![at],
            dirty_lines: view.lines().len(),
        };
        let is_lost = |finding: &mut finding::finding::Finding| {
            finding.rule = RULE.to_owned();
            finding.class = Class::Durability;
            finding.title = Title::Rule(TITLE.to_owned());
            finding.id = FindingId::new(RULE, finding.guilty());
            true
        };
        let (findings, evidence) = self.confirmed_as(&[cause], std::slice::from_mut(runner), &mut notes, &is_lost)?;
        if findings.is_empty() {
            return Err(SessionError::NeverRecovers(Box::new(symptom)));
        }
        // There is nothing to look for at the crash points.
        let coverage = Coverage { points_wanted: 0, ..coverage(survey, self.options, self.shard, &[]) };
        Ok(Checked {
            findings,
            coverage,
            evidence,
            notes,
            points: Vec::new(),
            judged_creation: self.options.selection.creation,
            judged_by: self.plan.judged_by(),
            interrupted: self.is_stopped(),
            events: self.reader.event_count(),
        })
    }
}
