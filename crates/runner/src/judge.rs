//! Judges a recovery by what it left, beside its own end: the tree of a file system, for example.

use std::fmt::Debug;

use recover::report::RunReport;
use trace::event::EventId;
use verdict::position::CrashPositions;
use verdict::symptom::Symptom;
use verdict::verdict::Verdict;

/// Knows what is right at each crash point.
pub trait Judge: Debug + Send + Sync {
    /// Where the standard changes.
    fn positions(&self) -> CrashPositions;

    /// Is a crash just before this event of interest?
    fn wants(&self, at: EventId) -> bool;

    /// Judges a recovery that succeeded by itself on what a crash just before this event left.
    fn judge(&self, at: EventId, run: &RunReport) -> Verdict;

    /// A recovery that failed by itself, named as users of this judge know it.
    fn named(&self, at: EventId, symptom: Symptom) -> Symptom;

    /// An operation of the recorded workload, for people.
    fn operation(&self, number: usize) -> Option<String>;

    /// All that is needed to judge one run on what a crash just before this event left, for a replay. Only the judge's own crate
    /// reads it.
    fn case(&self, at: EventId) -> Option<String>;
}
