//! How a failure shows. Data only: `report` has the words.
//!
//! A [`Symptom`] holds what is the same in every run of one failure and what may differ (numbers in a complaint, the operation that
//! was asked). [`Symptom::key`] is what stays the same.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::end::Limit;
use crate::position::CrashPosition;

/// What an oracle has against a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Symptom {
    /// A command ended as it should not.
    Failed { by: Party, how: Failure },
    /// Recovery succeeded, and the program then ended in an operation that it was asked.
    OperationFailed { operation: OperationName, how: Failure, crash: AtCrash },
    /// Recovery succeeded, every operation was answered rightly, and then the program ended as it should not.
    FailedAtEnd { how: Failure, crash: AtCrash },
    /// Recovery succeeded, and an operation got an answer that no run without a crash gives.
    WrongAnswer {
        operation: Option<OperationName>,
        got: Answer,
        /// All that would have been right.
        expected: Vec<Answer>,
        crash: AtCrash,
    },
    /// Each answer is right in some run without a crash, but not all of them in one.
    MixedAnswers { operation: Option<OperationName>, half_done: Option<HalfDone>, crash: AtCrash },
    /// Every answer is right, but for the order of the lines of a listing.
    OtherOrder { operation: Option<OperationName>, crash: AtCrash },
    /// The output as a whole has none of the right sequences of answers: more is not known without instrumentation.
    WrongOutput { crash: Option<AtCrash> },
    /// The daemon of a file system ended as it should not, after a crash in this operation or after it had returned.
    FileSystemFailed { operation: String, returned: bool, how: Failure },
    /// A file system was mounted, but its tree is not known.
    NoTree { operation: String, returned: bool },
    /// A file system serves a tree that breaks a promise: the promise's name, and what its oracle says.
    WrongTree { promise: String, text: String, trees: Trees },
}

/// Entries of a file system's tree that are not the same before the operation, after it, and after the crash: one line each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Trees {
    pub before: Vec<String>,
    pub after: Vec<String>,
    pub found: Vec<String>,
    /// Entries that are the same in all three.
    pub same: u64,
}

/// Who failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Party {
    Recovery,
    Checker,
    /// Recovery or an operation after it: an uninstrumented run does not show how far it came.
    RecoveryOrOperation,
}

/// What was wrong with how a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Failure {
    Hang {
        after_ms: u64,
    },
    OverLimit {
        limit: Limit,
    },
    /// A line of its output matched a pattern.
    Output {
        line: Complaint,
    },
    Signal {
        signal: i32,
        place: Option<CodePlace>,
    },
    Exit {
        code: i32,
        complaint: Option<Complaint>,
    },
}

/// A line that a program printed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Complaint {
    pub text: String,
    /// Without what differs from run to run.
    pub normal: String,
}

/// Where in its code a program was.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CodePlace {
    /// File name of the executable or library.
    pub module: String,
    pub address: u64,
    /// If it has a name.
    pub function: Option<String>,
}

/// What a program wrote for an operation; none: nothing was written, because it had ended.
pub type Answer = Option<String>;

/// One operation of the workload, or a query of the readback.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OperationName {
    /// Queries of the readback have none.
    pub number: Option<u64>,
    /// As the program reads it.
    pub text: String,
    /// Its name in the grammar, or its first word.
    pub word: String,
}

/// Where among the operations the crash came.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AtCrash {
    pub position: CrashPosition,
    /// The operation that was under way, or the last one that was answered.
    pub operation: Option<OperationName>,
    /// It is a window: its parts may have happened in any order.
    #[serde(default, skip_serializing_if = "is_false")]
    pub window: bool,
}

/// An operation of which only a part survived.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HalfDone {
    pub operation: OperationName,
    /// Answered as if it had not happened.
    pub undone: Option<OperationName>,
    /// Answered as if it had.
    pub done: Option<OperationName>,
}

/// The same for two runs of one failure, and only to be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymptomKey(String);

impl fmt::Display for SymptomKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Symptom {
    /// The program recovered and ended as it should, and answered wrongly.
    pub fn is_about_answers(&self) -> bool {
        matches!(self, Symptom::WrongAnswer { .. } | Symptom::MixedAnswers { .. } | Symptom::WrongOutput { .. })
    }

    pub fn key(&self) -> SymptomKey {
        let of = |operation: &Option<OperationName>| operation.as_ref().map_or("?", |known| &known.word).to_owned();
        SymptomKey(match self {
            Symptom::Failed { by: Party::Checker, how } => format!("checker {}", how.key()),
            // Without instrumentation nobody knows which of these it was.
            Symptom::Failed { how, .. } | Symptom::FailedAtEnd { how, .. } | Symptom::FileSystemFailed { how, .. } => {
                how.key()
            }
            Symptom::OperationFailed { operation, .. } => format!("end of {}", operation.word),
            Symptom::WrongAnswer { operation, .. } => format!("answer of {}", of(operation)),
            Symptom::MixedAnswers { operation, .. } => format!("mixed answers of {}", of(operation)),
            Symptom::OtherOrder { operation, .. } => format!("order of {}", of(operation)),
            Symptom::WrongOutput { .. } => "answers".to_owned(),
            Symptom::NoTree { .. } => "no tree".to_owned(),
            Symptom::WrongTree { promise, .. } => promise.clone(),
        })
    }

    /// Does another run confirm this one? Native mode sees no call path, and a complaint may name what differs.
    pub fn confirms(&self, other: &Symptom) -> bool {
        match (self.failure(), other.failure()) {
            (Some((by, one)), Some((other_by, other))) => by == other_by && one.is_same_kind(other),
            _ => self.key() == other.key(),
        }
    }

    /// Recovery itself died, hung or used more than it may: what is left in PM does not matter to how that shows.
    pub fn is_breakdown(&self) -> bool {
        let how = self.failure().filter(|(checker, _)| !checker).map(|(_, how)| how);
        matches!(how, Some(Failure::Signal { .. } | Failure::Hang { .. } | Failure::OverLimit { .. }))
    }

    /// Recovery did not end.
    pub fn is_hang(&self) -> bool {
        matches!(self.failure(), Some((false, Failure::Hang { .. })))
    }

    /// The run had to be ended, in recovery or in an operation after it: it took all the time that it had.
    pub fn is_endless(&self) -> bool {
        let how = match self {
            Symptom::OperationFailed { how, .. } => Some(how),
            _ => self.failure().map(|(_, how)| how),
        };
        matches!(how, Some(Failure::Hang { .. }))
    }

    /// How a command ended as it should not, and whether it was the checker.
    fn failure(&self) -> Option<(bool, &Failure)> {
        match self {
            Symptom::Failed { by, how } => Some((*by == Party::Checker, how)),
            Symptom::FailedAtEnd { how, .. } | Symptom::FileSystemFailed { how, .. } => Some((false, how)),
            _ => None,
        }
    }
}

impl fmt::Display for Symptom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}

impl Failure {
    fn key(&self) -> String {
        match self {
            Failure::Hang { .. } => "hang".to_owned(),
            Failure::OverLimit { limit } => format!("limit {limit:?}").to_lowercase(),
            Failure::Output { line } => format!("output: {}", line.normal),
            Failure::Signal { signal, place: None } => format!("signal {signal}"),
            Failure::Signal { signal, place: Some(place) } => {
                format!("signal {signal} in {}+{:#x}", place.module, place.address)
            }
            Failure::Exit { code, complaint: None } => format!("exit {code}"),
            Failure::Exit { code, complaint: Some(complaint) } => format!("exit {code}: {}", complaint.normal),
        }
    }

    fn is_same_kind(&self, other: &Failure) -> bool {
        match (self, other) {
            (Failure::Hang { .. }, Failure::Hang { .. }) | (Failure::Output { .. }, Failure::Output { .. }) => true,
            (Failure::OverLimit { limit: one }, Failure::OverLimit { limit: other }) => one == other,
            (Failure::Signal { signal: one, .. }, Failure::Signal { signal: other, .. }) => one == other,
            (Failure::Exit { code: one, .. }, Failure::Exit { code: other, .. }) => one == other,
            _ => false,
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(how: Failure) -> Symptom {
        Symptom::Failed { by: Party::Recovery, how }
    }

    fn exit(code: i32, text: &str) -> Symptom {
        let complaint = Complaint { text: text.into(), normal: text.replace(|c: char| c.is_ascii_digit(), "#") };
        failed(Failure::Exit { code, complaint: Some(complaint) })
    }

    fn signal(signal: i32, address: Option<u64>) -> Symptom {
        let place = address.map(|address| CodePlace { module: "kv".into(), address, function: None });
        failed(Failure::Signal { signal, place })
    }

    #[test]
    fn native_mode_confirms_without_a_call_path() {
        assert!(signal(11, Some(1)).confirms(&signal(11, None)));
        assert!(exit(1, "key 3 lost").confirms(&exit(1, "key 4 is lost")));
        assert!(failed(Failure::Hang { after_ms: 1 }).confirms(&failed(Failure::Hang { after_ms: 2 })));
        assert!(!exit(1, "key 3 lost").confirms(&exit(2, "key 3 lost")));
        assert!(!signal(11, None).confirms(&signal(7, None)));
        let how = Failure::Exit { code: 1, complaint: None };
        assert!(!Symptom::Failed { by: Party::Checker, how: how.clone() }.confirms(&failed(how)));
    }

    #[test]
    fn keys_leave_out_what_differs_between_runs() {
        assert_eq!(exit(1, "key 3 lost").key(), exit(1, "key 8 lost").key());
        assert_ne!(exit(1, "key 3 lost").key(), exit(1, "all lost").key());
        assert_ne!(signal(11, Some(1)).key(), signal(11, Some(2)).key());
        assert_eq!(failed(Failure::Hang { after_ms: 1 }).key(), failed(Failure::Hang { after_ms: 9 }).key());
        let somewhere =
            Symptom::Failed { by: Party::RecoveryOrOperation, how: Failure::Exit { code: 1, complaint: None } };
        assert_eq!(somewhere.key(), failed(Failure::Exit { code: 1, complaint: None }).key());
    }

    #[test]
    fn breakdowns_are_those_of_recovery() {
        assert!(signal(11, None).is_breakdown() && !signal(11, None).is_hang());
        assert!(failed(Failure::Hang { after_ms: 1 }).is_hang());
        assert!(!exit(1, "").is_breakdown());
        let checker = Symptom::Failed { by: Party::Checker, how: Failure::Hang { after_ms: 1 } };
        assert!(!checker.is_breakdown() && !checker.is_hang());
    }

    #[test]
    fn a_hang_is_endless_wherever_it_is() {
        let hang = || Failure::Hang { after_ms: 1 };
        let crash = AtCrash { position: CrashPosition::Before, operation: None, window: false };
        let operation = OperationName { number: Some(3), text: "u 1 2".to_owned(), word: "update".to_owned() };
        let in_operation = |how| Symptom::OperationFailed { operation: operation.clone(), how, crash: crash.clone() };
        assert!(failed(hang()).is_endless());
        assert!(in_operation(hang()).is_endless() && !in_operation(hang()).is_hang());
        assert!(Symptom::FailedAtEnd { how: hang(), crash: crash.clone() }.is_endless());
        assert!(!signal(11, None).is_endless());
        assert!(!in_operation(Failure::Signal { signal: 11, place: None }).is_endless());
    }
}
