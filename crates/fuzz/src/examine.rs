//! Checks of a case: the lint, and a crash search with the case's operations as oracle.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use check::again::AgainShare;
use check::session::{CheckSession, SessionError};
use crash::rounds::Shard;
use crash::search::{Budget, SearchOptions};
use crash::strategy::StrategySpec;
use crash::strategy::spec::BadStrategy;
use evidence::bundle::Expectation;
use finding::blame::Libraries;
use finding::finding::Finding;
use lint::lint::{Active, LintError, Options};
use operation::boundaries::BoundarySource;
use operation::equivalence::Asking;
use operation::workload::Workload;
use oracle::oracle::Oracle;
use recover::command::{Command, Input};
use recover::limits::Limits;
use runner::plan::{EngineChoice, OperationPlan, RecoveryPlan};

use crate::execute::{Delivery, Subject};
use crate::recorded::RecordedCase;

/// As `check` has them without inferred conditions.
pub const STRATEGIES: &str = "program-order,guaranteed-only,visible:64";

/// Operations that a recovered process is asked before the readback, as in `check`.
const OPERATIONS_AFTER: usize = 32;
const QUERIES: usize = 256;
const ANSWER_BYTES: u64 = 16 << 20;

#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    #[error(transparent)]
    Lint(#[from] LintError),
    #[error(transparent)]
    Strategy(#[from] BadStrategy),
    #[error(transparent)]
    Session(#[from] Box<SessionError>),
}

/// How cases are checked.
#[derive(Clone, Debug)]
pub struct Examination {
    pub subject: Subject,
    /// Opens the pools after a crash; none: the command again, with an empty input.
    pub recovery: Option<Command>,
    pub checker: Option<Command>,
    pub oracle: Oracle,
    pub expectation: Expectation,
    pub search: SearchOptions,
    pub libraries: Libraries,
    pub limits: Limits,
    /// For the search in one case.
    pub budget: Duration,
    /// Where bundles go, as a user names it.
    pub bundles: PathBuf,
}

impl Examination {
    /// Misuse in the recording of a case.
    pub fn lint(&self, case: &RecordedCase, rules: Vec<Active>) -> Result<Vec<Finding>, ExamineError> {
        let options = Options {
            model: self.search.rules.model,
            fences: self.search.rules.fences,
            libraries: self.libraries.clone(),
        };
        Ok(lint::lint::lint(&case.reader, rules, &options)?.findings)
    }

    /// What power failures during the case break. Bundles go into `folder`.
    pub fn crash(
        &self,
        case: &RecordedCase,
        input: &[u8],
        readback: &[u8],
        folder: &Path,
        stop: &AtomicBool,
    ) -> Result<Vec<Finding>, ExamineError> {
        let operations = match self.subject.delivery {
            Delivery::Operations => self.operations(case, input, readback),
            _ => None,
        };
        let plan = RecoveryPlan {
            recovery: self.recovery.clone().unwrap_or_else(|| self.default_recovery(input)),
            checker: self.checker.clone(),
            oracle: self.oracle.clone(),
            limits: Limits {
                output: if operations.is_some() { ANSWER_BYTES } else { self.limits.output },
                ..self.limits.clone()
            },
            pools: case
                .pools
                .iter()
                .cloned()
                .zip(case.reader.tables().pools.iter().map(|pool| pool.info.len))
                .collect(),
            engine: EngineChoice::ForkServer,
            // Test cases are recorded without the files beside the pools.
            names: Vec::new(),
            folders: Vec::new(),
            operations: operations.map(Arc::new),
            served: None,
            cancel: Default::default(),
            real_time: false,
        };
        let now = Instant::now();
        let session = CheckSession {
            reader: &case.reader,
            plan: &plan,
            expectation: &self.expectation,
            options: &self.search,
            fleet: None,
            shard: Shard::WHOLE,
            equivalence: true,
            workers: 1,
            budget: Budget { stop: Some(stop), deadline: Some(now + self.budget), ..Budget::default() },
            analysis_deadline: Some(now + self.budget * 2),
            analysis_with_hangs: None,
            reference_deadline: None,
            journal: None,
            merge: &[],
            again: AgainShare::None,
            judged_as: None,
            skip_operations: None,
            recovery_from: None,
            bundles: folder,
            bundles_option: Some(self.bundles.display().to_string()),
            libraries: &self.libraries,
            repaired: &[],
        };
        Ok(session.run(&|_| {}).map_err(Box::new)?.findings)
    }

    fn operations(&self, case: &RecordedCase, input: &[u8], readback: &[u8]) -> Option<OperationPlan> {
        let mut workload = Workload::new(input, readback).ok()?;
        workload.limit_queries(QUERIES);
        Some(OperationPlan {
            workload,
            operations_after: OPERATIONS_AFTER,
            recorded: Some(case.answers.clone()),
            asking: Asking::Fed,
            boundaries: BoundarySource::Events,
        })
    }

    /// The command again, on what a crash left.
    fn default_recovery(&self, input: &[u8]) -> Command {
        let mut command = self.subject.command.clone();
        command.stdin = Input::Empty;
        match &self.subject.delivery {
            Delivery::File(_) => {
                for word in &mut command.args {
                    if word == "@@" {
                        *word = "/dev/null".into();
                    }
                }
            }
            Delivery::Arguments => command.args.extend(crate::execute::arguments(input)),
            Delivery::Operations | Delivery::Stdin => {}
        }
        command
    }
}

/// The search of a case, with these strategies.
pub fn search_options(strategies: &str) -> Result<SearchOptions, BadStrategy> {
    Ok(SearchOptions { strategies: StrategySpec::list(strategies)?, ..SearchOptions::default() })
}
