//! How crashes are simulated, as plain data: what runs after one, what counts as a failure, which states are tried, and for how long.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crash::points::Density;
use crash::rounds::Selection;
use crash::search::SearchOptions;
use crash::strategy::StrategySpec;
use crash::walk::Rules;
use drive::address;
use drive::driver::Driver;
use evidence::bundle::{Expectation, FOLDER};
use operation::boundaries::BoundarySource;
use operation::equivalence::Asking;
use oracle::command_line::{CommandLineError, command_line};
use oracle::default_recovery::{NoCommand, default_recovery, directory};
use oracle::oracle::Oracle;
use oracle::pattern::{Pattern, PatternError};
use persistency::model::{Fences, ModelKind};
use recover::command::Command;
use recover::limits::Limits;
use runner::plan::{EngineChoice, OperationPlan, RecoveryPlan};
use trace::TraceReader;

use crate::code_path::Environment;
use crate::operations::{Operations, OperationsError, Resumed};

/// Enough for most bugs, and bounded at every crash point.
pub const STRATEGIES: &str = "program-order,guaranteed-only,few-lines:1:256,visible:64";

/// Answers show more than recovery does: what is likely to be wrong comes before all that can be told apart.
pub const WITH_OPERATIONS: &str = "program-order,guaranteed-only,inferred,few-lines:1:256,visible:64";

/// Operations after the crash, before the readback.
pub const OPERATIONS_AFTER: usize = 32;

/// Answers of a run that are kept: they are compared, so none may be missing.
const ANSWER_BYTES: u64 = 16 << 20;

/// How crashes are simulated. [`Settings::default`] is what `fencepost check` does without options.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The command line that opens the pools after a crash; none: the recorded command again, with an empty standard input.
    pub recover: Option<String>,
    /// A command line that inspects the recovered pools.
    pub checker: Option<String>,
    /// Globs over the paths of files that recovery shall find as they were at the crash, beside those in the folders of the pools.
    pub files: Vec<String>,
    /// Exit codes that mean success.
    pub exit_ok: Vec<i32>,
    /// A line of output that matches one of these regular expressions is a failure.
    pub fail_patterns: Vec<String>,
    /// How long to search for failing states; none: to the end.
    pub budget: Option<Duration>,
    /// Which states to try at each crash point; none: what suits the workload.
    pub strategies: Option<Vec<StrategySpec>>,
    /// Every crash point in the order of the trace, not first those whose call path is new.
    pub every: bool,
    /// At most so many crash points with the same call path.
    pub occurrences: Option<u64>,
    /// Where crash points are; none: what suits the model.
    pub points: Option<Density>,
    /// Crash inside functions that create pools, too.
    pub creation: bool,
    pub model: ModelKind,
    pub fences: Fences,
    /// A recovery that takes longer hangs.
    pub timeout: Duration,
    /// Bytes of memory that a recovery may use.
    pub memory: u64,
    /// Processes that a recovery may have at a time.
    pub processes: u32,
    pub engine: EngineChoice,
    /// Recoveries at a time; none: the number of processors.
    pub jobs: Option<usize>,
    /// False runs every state, also those that recovery cannot tell from one that was run.
    pub equivalence: bool,
    /// Let power fail a second time, during recovery, in a quarter of the budget. Otherwise, if nothing was found with default strategies, a
    /// few recoveries are crashed.
    pub again: bool,
    /// Operations after the crash, before the readback.
    pub operations_after: usize,
    /// Simulate no crash before this operation; none: crashes in the set-up have their share.
    pub skip_operations: Option<usize>,
    /// Where the bundles of findings go.
    pub bundles: PathBuf,
    /// How the user names that folder, if they go to another one first.
    pub bundles_shown: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            recover: None,
            checker: None,
            files: Vec::new(),
            exit_ok: vec![0],
            fail_patterns: Vec::new(),
            budget: Some(Duration::from_secs(60)),
            strategies: None,
            every: false,
            occurrences: None,
            points: None,
            creation: false,
            model: ModelKind::X86Adr,
            fences: Fences::All,
            timeout: Duration::from_secs(10),
            memory: 1 << 30,
            processes: 64,
            engine: EngineChoice::ForkServer,
            jobs: None,
            equivalence: true,
            again: false,
            operations_after: OPERATIONS_AFTER,
            skip_operations: None,
            bundles: FOLDER.into(),
            bundles_shown: None,
        }
    }
}

/// A setting that cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    CommandLine(#[from] CommandLineError),
    #[error(transparent)]
    NoCommand(#[from] NoCommand),
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error(transparent)]
    Operations(#[from] OperationsError),
    #[error("the {what} command `{}` is not found", program.display())]
    NotFound { what: &'static str, program: PathBuf },
    #[error("--resume is empty")]
    EmptyResume,
}

impl Settings {
    pub fn expectation(&self) -> Expectation {
        Expectation { exit_codes: self.exit_ok.clone(), patterns: self.fail_patterns.clone(), ..Expectation::default() }
    }

    /// What to run on the crash images of a trace. `recorded` is what the program answered while it was recorded, if that is
    /// known.
    pub fn plan(
        &self,
        reader: &TraceReader,
        operations: Option<&Operations>,
        env: &Environment,
        recorded: Option<Vec<u8>>,
    ) -> Result<RecoveryPlan, SettingsError> {
        let resumed = operations.map(|operations| operations.resumed(reader)).transpose()?.flatten();
        let meta = &reader.tables().meta;
        let line = |command: &str| command_line(command, directory(meta), env.clone());
        let default = || default_recovery(meta, env.clone());
        let recovery = match (&self.recover, Driver::of(&meta.command)) {
            _ if resumed.is_some() => {
                let words = resumed.iter().flat_map(|resumed| &resumed.recovery).map(OsString::from);
                let command = Command::here(&words.collect::<Vec<_>>()).ok_or(SettingsError::EmptyResume)?;
                Command { dir: directory(meta), env: env.clone(), ..command }
            }
            (Some(command), Some(driver)) => Command { args: driver.after(command).split_off(1), ..default()? },
            (Some(command), None) => line(command)?,
            (None, _) => default()?,
        };
        let checker = self.checker.as_deref().map(line).transpose()?;
        for (what, command) in [("recovery", Some(&recovery)), ("checker", checker.as_ref())] {
            let found = |command: &&Command| command.executable().is_some_and(|file| file.exists());
            if let Some(command) = command.filter(|command| !found(command)) {
                return Err(SettingsError::NotFound { what, program: command.program.clone() });
            }
        }
        let operations = self.operation_plan(operations, resumed, recorded).map(Arc::new);
        Ok(RecoveryPlan {
            recovery,
            checker,
            oracle: oracle(&self.expectation())?,
            limits: Limits {
                wall: self.timeout,
                // A run that only computes shall hang, not meet this limit first.
                cpu: self.timeout * 2 + Duration::from_secs(1),
                memory: self.memory,
                processes: self.processes,
                output: if operations.is_some() { ANSWER_BYTES } else { Limits::default().output },
            },
            operations,
            names: reader.tables().paths.iter().filter(|path| !address::is_own(Path::new(path))).cloned().collect(),
            folders: self.folders(reader),
            served: None,
            cancel: Default::default(),
            real_time: false,
            pools: reader.tables().pools.iter().map(|pool| (pool.info.path.clone().into(), pool.info.len)).collect(),
            engine: self.engine,
        })
    }

    /// Where files are put back as they were, beside the folders of the pools.
    fn folders(&self, reader: &TraceReader) -> Vec<PathBuf> {
        let tables = reader.tables();
        let wanted = |path: &&String| self.files.iter().any(|glob| finding::glob::matches(glob, path));
        let named = tables.paths.iter().filter(wanted).filter_map(|path| Path::new(path).parent());
        let cwd = (!tables.meta.cwd.is_empty()).then(|| PathBuf::from(&tables.meta.cwd));
        named.map(Path::to_owned).chain(cwd).collect()
    }

    fn operation_plan(
        &self,
        operations: Option<&Operations>,
        resumed: Option<Resumed>,
        recorded: Option<Vec<u8>>,
    ) -> Option<OperationPlan> {
        let operations_after = self.operations_after;
        if let Some(Resumed { workload, asking, boundaries, .. }) = resumed {
            return Some(OperationPlan { workload, operations_after, recorded, asking, boundaries });
        }
        let (asking, boundaries) = (Asking::Fed, BoundarySource::Events);
        let workload = operations.and_then(Operations::fed).cloned()?;
        Some(OperationPlan { workload, operations_after, recorded, asking, boundaries })
    }

    /// Which states to try. Without conditions of the run, those that need them are left out, unless the user wants them.
    pub fn strategies(&self, operations: Option<&Operations>, with_conditions: bool) -> Vec<StrategySpec> {
        let list =
            if with_conditions && operations.is_some_and(Operations::are_known) { WITH_OPERATIONS } else { STRATEGIES };
        let ours = || StrategySpec::list(list).expect("these are strategies");
        self.strategies.clone().unwrap_or_else(ours)
    }

    /// The conditions of the run are needed.
    pub fn breaks_conditions(&self, operations: Option<&Operations>) -> bool {
        self.strategies(operations, true).into_iter().any(StrategySpec::needs_conditions)
    }

    pub fn search_options(&self, plan: &RecoveryPlan, strategies: Vec<StrategySpec>) -> SearchOptions {
        SearchOptions {
            rules: Rules { model: self.model, fences: self.fences },
            selection: Selection {
                density: self.points.unwrap_or(Density::of(self.model)),
                every: self.every,
                occurrences: self.occurrences,
                creation: self.creation,
                ..Selection::default()
            },
            strategies,
            recovery: format!(
                "{:?} {:?} {:?} {:?}",
                words(&plan.recovery),
                plan.checker.as_ref().map(words),
                self.expectation(),
                plan.operations.as_ref().map(|operations| (
                    operations.workload.fingerprint(),
                    operations.workload.order,
                    operations.operations_after,
                    &operations.asking
                ))
            ),
            ..SearchOptions::default()
        }
    }

    /// Recoveries at a time.
    pub fn workers(&self, reader: &TraceReader) -> usize {
        if Driver::of(&reader.tables().meta.command).is_some_and(Driver::one_at_a_time) {
            return 1;
        }
        self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// How the folder is named in a command for the user; none: it need not be.
    pub fn bundles_option(&self) -> Option<String> {
        let shown = self.bundles_shown.as_ref().unwrap_or(&self.bundles);
        (*shown != *FOLDER).then(|| shown.display().to_string())
    }
}

fn words(command: &Command) -> Vec<String> {
    let args = command.args.iter().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(command.program.display().to_string()).chain(args).collect()
}

/// The oracle that expects this.
pub fn oracle(expectation: &Expectation) -> Result<Oracle, PatternError> {
    let mut oracle = Oracle::default();
    if !expectation.exit_codes.is_empty() {
        oracle.exit_ok = expectation.exit_codes.iter().copied().collect();
    }
    for pattern in &expectation.patterns {
        oracle.patterns.push(Pattern::new(pattern)?);
    }
    Ok(oracle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_strategies_can_be_read() {
        let settings = Settings::default();
        assert!(!settings.strategies(None, true).is_empty());
        assert!(!settings.breaks_conditions(None));
        assert!(StrategySpec::list(WITH_OPERATIONS).unwrap().into_iter().any(StrategySpec::needs_conditions));
    }
}
