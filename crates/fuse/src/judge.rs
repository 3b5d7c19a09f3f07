//! Judges the tree that a recovered file system serves.

use drive::fuse::{STILL_MOUNTED, UNMOUNTED};
use fs::agent::UNUSABLE;
use fs::errno::Errno;
use fs::oracle::{Crash, Past, Promises, judge_synced};
use fs::promise::{Broken, Promise};
use fs::tree::Tree;
use fs::workload::Step;
use operation::boundaries::OperationBoundaries;
use recover::report::RunReport;
use runner::judge::Judge;
use trace::event::EventId;
use verdict::position::CrashPosition;
use verdict::position::CrashPositions;
use verdict::symptom::{Party, Symptom};
use verdict::verdict::Verdict;

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
}

/// What an attendant or a driver reports of a recovered file system.
struct Report {
    tree: Tree,
    usable: String,
    unmounted: String,
}

impl Report {
    fn parse(stdout: &[u8]) -> Option<Report> {
        let text = String::from_utf8_lossy(stdout);
        let (tree, rest) = text.split_once("\nok\n")?;
        let mut rest = rest.lines();
        let (usable, unmounted) = (rest.next()?.to_owned(), rest.next()?.to_owned());
        Some(Report { tree: Tree::parse(tree).ok()?, usable, unmounted })
    }
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

    fn broken(&self, step: usize, returned: bool, report: &Report) -> Result<(), Box<Broken>> {
        let (Some(before), Some(after)) = (self.reference.before(step), self.reference.after(step)) else {
            return Ok(());
        };
        let crash = Crash { op: &self.steps[step].op, before, after, returned };
        if self.needs_fsync {
            judge_synced(&self.past(step), returned, &report.tree)?;
        } else {
            crash.judge(&report.tree, self.promises)?;
        }
        if let Some(unusable) = report.usable.strip_prefix(UNUSABLE).and_then(|text| text.parse().ok()) {
            return Err(crash.broken(Promise::Usable(unusable)));
        }
        if report.unmounted != UNMOUNTED {
            let errno = report.unmounted.strip_prefix(STILL_MOUNTED).and_then(Errno::of_name);
            return Err(crash.broken(Promise::Unmounts(errno.unwrap_or(Errno(libc::EIO)))));
        }
        Ok(())
    }

    /// Steps since the last reset whose trees are known.
    fn past(&self, step: usize) -> Vec<Past<'_>> {
        let reset = self.steps[..step].iter().rposition(|step| step.op == fs::op::Op::Reset);
        let from = reset.map_or(0, |reset| reset + 1);
        let known = (from..=step).filter_map(|number| Some((number, self.reference.after(number)?)));
        known.map(|(number, after)| Past { op: &self.steps[number].op, after }).collect()
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
        let Some(report) = Report::parse(&run.stdout) else {
            let operation = self.steps[step].op.to_string();
            return Verdict::fail(Symptom::NoTree { operation, returned });
        };
        match self.broken(step, returned, &report) {
            Ok(()) => Verdict::Pass,
            Err(broken) => Verdict::fail(Symptom::WrongTree { promise: broken.key(), text: broken.to_string() }),
        }
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

    fn allowed(&self, at: EventId) -> Vec<Vec<u8>> {
        let Some((step, returned)) = self.step(at) else { return Vec::new() };
        let before = if returned { None } else { self.reference.before(step) };
        let trees = before.into_iter().chain(self.reference.after(step));
        trees.map(|tree| format!("{tree}ok\nok\n{UNMOUNTED}\n").into_bytes()).collect()
    }
}
