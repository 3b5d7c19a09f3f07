//! What to run on crash images, and how to judge it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use operation::boundaries::BoundarySource;
use operation::equivalence::Asking;
use operation::workload::Workload;
use oracle::oracle::Oracle;
use recover::command::Command;
use recover::limits::Limits;
use recover::report::RunReport;
use supervise::cancel::Cancel;
use trace::event::EventId;
use verdict::verdict::Verdict;

use crate::judge::Judge;
use crate::machine::Machines;

/// What to run and how to judge it.
#[derive(Clone, Debug)]
pub struct RecoveryPlan {
    pub recovery: Command,
    /// A command that inspects the recovered pools.
    pub checker: Option<Command>,
    pub oracle: Oracle,
    pub limits: Limits,
    /// Path (absolute, without links) and length of each pool, by number.
    pub pools: Vec<(PathBuf, u64)>,
    pub engine: EngineChoice,
    /// Paths of files that the workload changed. Those in the folders of the pools and in `folders` are put in place as they were.
    pub names: Vec<String>,
    pub folders: Vec<PathBuf>,
    /// Judge by the answers to operations as well.
    pub operations: Option<Arc<OperationPlan>>,
    /// A file system's daemon is judged by the tree that it serves.
    pub served: Option<ServedTree>,
    /// Ends runs from outside.
    pub cancel: Cancel,
    /// Recoveries see the clock of the machine.
    pub real_time: bool,
}

/// How to look at what a recovered daemon serves, and what is right.
#[derive(Clone, Debug)]
pub struct ServedTree {
    /// The recovery.
    pub daemon: Command,
    pub judge: Arc<dyn Judge>,
    /// A process beside the daemon, in the fork server; empty: the recovery itself prints what it serves.
    pub attendant: Vec<OsString>,
    /// The daemon with its client, in native mode; both print the same.
    pub native: Command,
    /// Recoveries run in virtual machines instead of the fork server.
    pub machines: Option<Arc<dyn Machines>>,
}

impl RecoveryPlan {
    /// The verdict, and that on the tree.
    pub(crate) fn by_tree(&self, at: EventId, run: &RunReport, verdict: Verdict) -> Verdict {
        match (&self.served, verdict) {
            (Some(served), Verdict::Pass) => served.judge.judge(at, run),
            (Some(served), Verdict::Fail(symptom)) => Verdict::fail(served.judge.named(at, *symptom)),
            (None, verdict) => verdict,
        }
    }

    pub fn judged_by(&self) -> JudgedBy {
        JudgedBy { checker: self.checker.is_some(), answers: self.operations.is_some() || self.served.is_some() }
    }
}

/// Which oracles judge a recovery, beside its own exit, signals and output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct JudgedBy {
    pub checker: bool,
    /// Answers to operations were compared.
    pub answers: bool,
}

/// Operations that the recorded program was given, and how many of them a recovered one is asked.
#[derive(Clone, Debug)]
pub struct OperationPlan {
    pub workload: Workload,
    /// Before the readback.
    pub operations_after: usize,
    /// What the recorded program wrote.
    pub recorded: Option<Vec<u8>>,
    pub asking: Asking,
    pub boundaries: BoundarySource,
}

/// How recoveries run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// Forks of a warm process, with what each read.
    #[default]
    ForkServer,
    /// The uninstrumented program, started anew each time.
    Native,
}
