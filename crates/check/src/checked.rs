//! The result of a session, and of several about one program.

use crash::outcome::{Coverage, PointOutcome};
use finding::evidence::Evidence;
use finding::finding::Finding;
use finding::note::RunNote;
use finding::severity::Severity;
use runner::plan::JudgedBy;

/// What a session brought home.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Checked {
    /// Confirmed.
    pub findings: Vec<Finding>,
    pub coverage: Coverage,
    /// What reports show of the findings that have bundles.
    pub evidence: Vec<Evidence>,
    /// For the user: what was not done, or not as it should be.
    pub notes: Vec<RunNote>,
    /// All crash points that were judged. They stay where they were judged.
    #[serde(skip)]
    pub points: Vec<PointOutcome>,
    /// Those in the creation of pools as well.
    pub judged_creation: bool,
    pub judged_by: JudgedBy,
    /// The user wanted it to end.
    pub interrupted: bool,
    /// Of the recording, or of all of them.
    pub events: u64,
}

impl Checked {
    /// Recovery failed, and no time was left to tell why: that nothing was found does not mean that all is well.
    pub fn is_open(&self) -> bool {
        let is_error = |finding: &Finding| finding.severity == Severity::Error;
        self.notes.iter().any(RunNote::leaves_open) && !self.findings.iter().any(is_error)
    }

    /// Adds what another session found with another recording of the same program: each root cause once.
    pub fn absorb(&mut self, other: Checked) {
        for finding in other.findings {
            if self.findings.iter().all(|known| known.id != finding.id) {
                self.findings.push(finding);
            }
        }
        for evidence in other.evidence {
            if self.evidence.iter().all(|known| known.finding.id != evidence.finding.id) {
                self.evidence.push(evidence);
            }
        }
        for note in other.notes {
            let known = self.notes.iter_mut().find(|own| **own == note || both_assume(own, &note));
            match (known, note) {
                // Repairs are carried from one to the next.
                (Some(RunNote::RepairsAssumed { places: own }), RunNote::RepairsAssumed { places }) => {
                    *own = (*own).max(places);
                }
                (Some(_), _) => {}
                (None, note) => self.notes.push(note),
            }
        }
        self.coverage.absorb(&other.coverage);
        self.judged_creation |= other.judged_creation;
        self.interrupted |= other.interrupted;
        self.events += other.events;
    }
}

fn both_assume(one: &RunNote, other: &RunNote) -> bool {
    matches!((one, other), (RunNote::RepairsAssumed { .. }, RunNote::RepairsAssumed { .. }))
}

#[cfg(test)]
mod tests {
    use finding::finding::{FindingId, Title};

    use super::*;

    fn checked(places: u64) -> Checked {
        Checked {
            findings: Vec::new(),
            coverage: Coverage { states_decided: 5, ..Coverage::default() },
            evidence: Vec::new(),
            notes: vec![RunNote::RepairsAssumed { places }, RunNote::NoTime],
            points: Vec::new(),
            judged_creation: false,
            judged_by: JudgedBy { checker: false, answers: true },
            interrupted: false,
            events: 7,
        }
    }

    #[test]
    fn failures_that_nobody_looked_into_leave_it_open() {
        let mut checked = checked(1);
        let not_confirmed = |severity| RunNote::NotConfirmed {
            finding: FindingId("0123".into()),
            title: Box::new(Title::Rule("late".into())),
            severity,
        };
        checked.notes.push(not_confirmed(Severity::Warning));
        assert!(!checked.is_open());
        for note in [not_confirmed(Severity::Error), RunNote::NotAnalysed { states: 3 }] {
            checked.notes.push(note);
            assert!(checked.is_open());
            checked.notes.pop();
        }
    }

    #[test]
    fn several_recordings_are_told_as_one() {
        let mut all = checked(2);
        all.absorb(checked(3));
        all.absorb(checked(1));
        assert_eq!((all.events, all.coverage.states_decided), (21, 15));
        assert_eq!(all.notes, [RunNote::RepairsAssumed { places: 3 }, RunNote::NoTime]);
    }
}
