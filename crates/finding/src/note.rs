//! Remarks on findings and on whole runs, as data: `report` has the words.

use serde::{Deserialize, Serialize};
use trace::event::EventId;
use verdict::contradiction::Contradiction;
use verdict::symptom::{OperationName, Symptom};

use crate::finding::{FindingId, Title};
use crate::severity::Severity;

/// What else is known about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Note {
    /// The failing state breaks a condition that was inferred from the run.
    BrokenCondition { condition: Condition, first: CodeLine, second: CodeLine },
    /// The lost store is of an operation that was over when power failed.
    LostStoreOf { operation: OperationName },
    /// In which operations it shows.
    SeenIn { groups: Vec<OperationGroup>, left_out: u64 },
    /// The file that the data lies in.
    InFile { name: String },
    /// The function whose locked instruction happens to complete a flush, and the library that it is of.
    FencedIn { function: Option<String>, module: String },
    /// The stores whose loss shows only together.
    NotSeparated { stores: u64 },
    /// The same two stores are not ordered either, but an order alone may not help.
    OrderAlone,
    /// The store is in a PMDK transaction that does not know of it.
    NotInTransaction,
    /// None of so many crash states that were checked needs the data.
    NotNeeded { states: u64 },
    /// Of fuzzing: the case that showed it, and the shortest input that still does.
    FoundByCase { case: u64, executions: u64, parts: u64, of_parts: u64, folder: String },
    /// Of fuzzing: what the run that broke down began with.
    BeganWith { pool: StartingPool },
}

/// The pool that a fuzzed run began with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartingPool {
    None,
    /// What a power failure at this event of an earlier case left; the state by its name.
    CrashImage {
        event: u64,
        state: String,
    },
    OfEarlierCase,
}

/// Witcher's likely-correctness conditions (SOSP 2021, §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    Po1,
    Po2,
    Po3,
    Pa1,
}

/// A line of source, or an address without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeLine {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub address: u64,
}

/// Operations of one kind that go the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationGroup {
    pub word: String,
    /// Functions that others of the kind do not go through.
    pub through: Vec<String>,
    pub times: u64,
    /// The text of the first.
    pub first: String,
}

/// A remark on a run as a whole: what was not done, or not as it should be. `why` is the message of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RunNote {
    /// Two runs of recovery read the same and went on differently.
    NotDeterministic {
        how: Contradiction,
        /// Nothing had been concluded from reads.
        all_run: bool,
    },
    /// Recovery looks at none of the pools.
    ReadsNothing {
        pools: Vec<String>,
    },
    /// The run began with these pools, so that their creation is not tested.
    PoolsExisted {
        pools: Vec<String>,
    },
    NativeRuns {
        why: String,
    },
    /// A recovery in a process that an earlier one had used showed something else than in a fresh one.
    ReuseDiffers,
    /// The runs that tell the right answers open the pools anew at each operation.
    Reopened {
        why: String,
    },
    /// Without one of so many operations the program fails by itself.
    FailsWithout {
        operations: u64,
    },
    /// Only so many queries of the readback were asked.
    FewQueries {
        asked: u64,
        all: u64,
    },
    /// To find what else is wrong, the stores of so many places were taken to be durable once their bug was known.
    RepairsAssumed {
        places: u64,
    },
    /// Failing states for which no time was left.
    NotAnalysed {
        states: u64,
    },
    /// So many threads stored to PM, in the order of the one recording.
    Interleaved {
        threads: u64,
    },
    /// Interrupted before any crash was simulated.
    Interrupted,
    /// The time was over before any crash was simulated.
    NoTime,
    /// Native runs did not confirm a finding.
    NotReproduced {
        finding: FindingId,
        title: Box<Title>,
    },
    /// The time was over before native runs could confirm a finding.
    NotConfirmed {
        finding: FindingId,
        title: Box<Title>,
        severity: Severity,
    },
    NoBundle {
        finding: FindingId,
        why: String,
    },
    NoTimeline {
        finding: FindingId,
        why: String,
    },
    BundleNotKept {
        finding: FindingId,
        why: String,
    },
    /// Nobody could judge so many crash points: workers died of them, or gave them back.
    PointsSetAside {
        points: u64,
        lost: u64,
        failures: Vec<String>,
    },
    /// The same of workloads of a file system.
    WorkloadsSetAside {
        count: u64,
        lost: u64,
        failures: Vec<String>,
    },
    /// So many recoveries were crashed in turn.
    RecoveriesCrashed {
        recoveries: u64,
        states: u64,
    },
    /// The recovery from a crash at this event was not crashed, because it does not use all pools.
    RecoveryUsesFewPools {
        event: EventId,
    },
    /// A second recovery after a complete one fails.
    SecondRecoveryFails {
        event: EventId,
        symptom: Box<Symptom>,
    },
    RecoveryNotCrashed {
        event: EventId,
        why: String,
    },
    /// Recovery does not find these files as they were at the crash.
    FilesAsLeft {
        names: Vec<String>,
    },
    /// These files were changed in ways that the recording does not tell of: recovery finds them as the whole run left them.
    FilesNotRecorded {
        names: Vec<String>,
    },
    /// Recoveries write to these files, where later ones see it.
    SharedFiles {
        names: Vec<String>,
    },
    /// Of file systems: so many workloads of system calls were crashed, and so many of the states needed no recovery run.
    Workloads {
        count: u64,
        #[serde(default)]
        states: u64,
        #[serde(default)]
        saved: u64,
    },
    /// Of a report made later: the run itself is not known.
    RunNotKept,
    /// Of a report made later: findings that are not of the last run.
    OlderFindings {
        count: u64,
    },
    /// Of a report made later: a bundle cannot be read.
    Unreadable {
        why: String,
    },
}

impl RunNote {
    /// Was an error seen of which it is not known whether it is one?
    pub fn leaves_open(&self) -> bool {
        match self {
            RunNote::NotAnalysed { .. } => true,
            RunNote::NotConfirmed { severity, .. } => *severity == Severity::Error,
            _ => false,
        }
    }
}
