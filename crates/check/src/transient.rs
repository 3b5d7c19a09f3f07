//! Data that is never made durable, and whose loss no answer shows: this workload does not need it after a restart (Witcher's P-U). Another may.

use finding::finding::{Class, Finding, Location};
use finding::note::Note;
use finding::severity::Severity;

use crate::checked::Checked;

/// The lint's rule for lines that are never flushed: as long as nobody has looked, they may be meant to last.
const TRANSIENT_DATA: &str = "FP0301";

/// Stores that the lint suspects, and that none of the crash states that were checked needs: the cost of keeping them in PM, as far as the
/// operations can tell. Nothing is said unless every crash point was judged.
pub fn confirm(misuse: &mut [Finding], checked: &Checked) {
    let coverage = &checked.coverage;
    if coverage.points_finished == 0 || coverage.points_finished < coverage.points_wanted {
        return;
    }
    for finding in misuse.iter_mut().filter(|finding| finding.rule == TRANSIENT_DATA) {
        let guilty = finding.guilty().clone();
        let blamed = checked.findings.iter().flat_map(|found| &found.locations).any(|other| same_place(&guilty, other));
        if !blamed {
            finding.class = Class::Performance;
            finding.severity = Severity::Performance;
            finding.notes.push(Note::NotNeeded { states: coverage.states_decided });
        }
    }
}

fn same_place(one: &Location, other: &Location) -> bool {
    match (&one.file, one.line) {
        (Some(file), Some(line)) => other.file.as_ref() == Some(file) && other.line == Some(line),
        _ => one.module == other.module && one.address == other.address,
    }
}
