//! Judges the tree that a recovered file system serves.

use std::path::PathBuf;

use fs::op::Op;
use fs::oracle::{Crash, Past, Promises};
use fs::workload::Step;
use operation::boundaries::OperationBoundaries;
use recover::report::RunReport;
use runner::judge::Judge;
use trace::event::EventId;
use verdict::position::{CrashPosition, CrashPositions};
use verdict::symptom::{Party, Symptom};
use verdict::verdict::Verdict;

use crate::case::{Case, verdict};
use crate::reference::Reference;

/// What must hold at every crash point of a recorded workload.
#[derive(Debug)]
pub struct TreeJudge {
    pub boundaries: OperationBoundaries,
    pub steps: Vec<Step>,
    pub reference: Reference,
    pub promises: Promises,
    /// Only what was synced must be there.
    pub needs_fsync: bool,
    /// Where it is mounted, if it is, and the folders that a replay needs.
    pub mount: Option<PathBuf>,
    pub folders: Vec<PathBuf>,
}

impl TreeJudge {
    /// The step that is judged after a crash just before this event, and whether it had returned.
    fn step(&self, at: EventId) -> Option<(usize, bool)> {
        let (number, returned) = match self.boundaries.position(at) {
            CrashPosition::Before => return None,
            CrashPosition::During(number) => (number, false),
            CrashPosition::After(number) => (number, true),
        };
        self.steps.get(number).filter(|step| step.crash).map(|_| (number, returned))
    }

    /// Steps since the last reset whose trees are known.
    fn past(&self, step: usize) -> Vec<Past<'_>> {
        let reset = self.steps[..step].iter().rposition(|step| step.op == Op::Reset);
        let from = reset.map_or(0, |reset| reset + 1);
        let known = (from..=step).filter_map(|number| Some((number, self.reference.after(number)?)));
        let told = |op: &Op| self.mount.is_none() || *op != Op::Sync;
        let past = |(number, after): (usize, _)| {
            let op = &self.steps[number].op;
            Past { op, after, told: told(op) }
        };
        known.map(past).collect()
    }
}

impl Judge for TreeJudge {
    fn positions(&self) -> CrashPositions {
        self.boundaries.positions()
    }

    fn wants(&self, at: EventId) -> bool {
        self.step(at).is_some()
    }

    fn judge(&self, at: EventId, run: &RunReport) -> Verdict {
        let Some((step, returned)) = self.step(at) else { return Verdict::Pass };
        let (Some(before), Some(after)) = (self.reference.before(step), self.reference.after(step)) else {
            return Verdict::Pass;
        };
        let crash = Crash { op: &self.steps[step].op, before, after, returned };
        let past = self.needs_fsync.then(|| self.past(step));
        verdict(&crash, past.as_deref(), self.promises, &run.stdout)
    }

    fn named(&self, at: EventId, symptom: Symptom) -> Symptom {
        match (symptom, self.step(at)) {
            (Symptom::Failed { by: Party::Recovery, how }, Some((step, returned))) => {
                Symptom::FileSystemFailed { operation: self.steps[step].op.to_string(), returned, how }
            }
            (symptom, _) => symptom,
        }
    }

    fn operation(&self, number: usize) -> Option<String> {
        self.steps.get(number).map(|step| step.op.to_string())
    }

    fn case(&self, at: EventId) -> Option<String> {
        let (step, returned) = self.step(at)?;
        let (before, after) = (self.reference.before(step)?, self.reference.after(step)?);
        let past = || self.past(step).iter().map(|past| (past.op.to_string(), past.after.to_string())).collect();
        let case = Case {
            mount: self.mount.clone(),
            folders: self.folders.clone(),
            operation: self.steps[step].op.to_string(),
            returned,
            atomic_writes: self.promises.atomic_writes,
            page: self.promises.page,
            before: before.to_string(),
            after: after.to_string(),
            past: self.needs_fsync.then(past),
        };
        Some(case.to_text())
    }
}
