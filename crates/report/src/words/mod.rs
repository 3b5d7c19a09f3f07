//! The words: the one place in which what was found becomes English. What comes in is data, and nobody takes it apart again.

mod note;
mod place;
mod repair;
mod run_note;
mod symptom;
mod title;

use finding::finding::{Also, Finding, Thread};
use verdict::crash_point::PointKind;

pub use note::note;
pub use repair::repair;
pub use run_note::{run_note, set_aside};
pub use symptom::{symptom, trees};
pub use title::{headline, title, title_of};

use crate::number::{counted, separated};

/// What happened and what would help, each in a sentence; the title is not among them.
pub fn notes(finding: &Finding) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(failure) = &finding.failure {
        if let Some(event) = failure.recovery_from {
            notes.push(format!(
                "the first power failure was at event {} of the workload, the second one during the recovery from it",
                event.0
            ));
        }
        notes.push(format!("what recovery did: {}", symptom(&failure.symptom)));
        notes.extend(trees(&failure.symptom).iter().map(|(name, entries)| format!("tree {name}: {entries}")));
        let verb = if failure.dirty_lines == 1 { "was" } else { "were" };
        notes.push(format!(
            "power failed {} at event {}; {} {verb} not guaranteed there",
            point_kind(failure.crash_point.kind),
            failure.crash_point.event.0,
            counted(failure.dirty_lines, "cache line"),
        ));
        notes.extend(failure.repair.as_ref().map(repair));
    }
    notes.extend(finding.notes.iter().map(note));
    notes
}

/// The same bug in the words of another rule, or of another failure.
pub fn also(also: &Also) -> String {
    format!("also {}: {}", also.rule, title_of(&also.title))
}

/// `thread 2 (worker)`.
pub fn thread(thread: &Thread) -> String {
    let runs = thread.runs.as_ref().map_or_else(String::new, |function| format!(" (`{function}`)"));
    format!("thread {}{runs}", thread.id.0)
}

/// When power failed.
pub fn point_kind(kind: PointKind) -> &'static str {
    match kind {
        PointKind::Flush => "before a flush",
        PointKind::Fence => "before a fence",
        PointKind::Rmw => "before a locked instruction",
        PointKind::Sync => "before a sync",
        PointKind::File => "before a change by the file system",
        PointKind::OperationBegin => "before an operation",
        PointKind::OperationEnd => "after an operation",
        PointKind::ThreadEnd => "at the end of a thread",
        PointKind::ProcessExit => "at the end of a process",
        PointKind::EndOfTrace => "at the end",
        PointKind::AfterStore => "after a store",
        PointKind::FirstStore => "before the first store",
    }
}

/// How often, in a word if it was once.
fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", separated(count)) }
}
