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
        let Some((step, returned)) = self.step(at) else { return Verdict::pass() };
        let Some(report) = Report::parse(&run.stdout) else {
            return self
                .named(at, Verdict::fail("fs no tree", "the file system was mounted, but its tree is not known"));
        };
        match self.broken(step, returned, &report) {
            Ok(()) => Verdict::pass(),
            Err(broken) => Verdict::fail(broken.key(), broken.to_string()),
        }
    }

    fn named(&self, at: EventId, verdict: Verdict) -> Verdict {
        let Some((step, returned)) = self.step(at) else { return verdict };
        let how = verdict.symptom.text.strip_prefix("recovery ").unwrap_or(&verdict.symptom.text);
        let when = if returned { "after" } else { "during" };
        let text = format!("after a crash {when} `{}`, the daemon {how}", self.steps[step].op);
        Verdict::fail(verdict.symptom.key, text)
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
