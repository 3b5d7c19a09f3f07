//! How crashes are simulated: the options that `check` and `crash` share.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::super::output::progress::ProgressStyle;
use super::driver::Driver;
use super::operation::OperationOptions;
use super::resume::{ResumeOptions, Resumed};
use clap::{Args, ValueEnum};
use crash::outcome::Coverage;
use crash::points::Density;
use crash::rounds::{Selection, Shard};
use crash::search::SearchOptions;
use crash::strategy::StrategySpec;
use crash::walk::Rules;
use evidence::bundle::{Expectation, FOLDER};
use operation::boundaries::BoundarySource;
use operation::equivalence::Asking;
use oracle::command_line::command_line;
use oracle::default_recovery::{default_recovery, directory};
use oracle::oracle::Oracle;
use oracle::pattern::Pattern;
use persistency::model::{Fences, ModelKind};
use recover::command::Command;
use recover::limits::Limits;
use runner::runner::{EngineChoice, OperationPlan, Plan};
use trace::TraceReader;

use crate::exit::Exit;
use crate::render;

/// Enough for most bugs, and bounded at every crash point.
const STRATEGIES: &str = "program-order,guaranteed-only,few-lines:1:256,visible:64";

/// Answers show more than recovery does: what is likely to be wrong comes before all that can be told apart.
const WITH_OPERATIONS: &str = "program-order,guaranteed-only,inferred,few-lines:1:256,visible:64";

/// Answers of a run that are kept: they are compared, so none may be missing.
const ANSWER_BYTES: u64 = 16 << 20;

#[derive(Args, Clone, Debug)]
pub struct CrashOptions {
    #[command(flatten)]
    pub operations: OperationOptions,
    #[command(flatten)]
    pub resume: ResumeOptions,
    /// Command that opens the pools after a crash. [default: the recorded command again, with empty standard input]
    #[arg(long, value_name = "CMD")]
    pub recover: Option<String>,
    /// Command that inspects the recovered pools; a nonzero exit is a failure.
    #[arg(long, value_name = "CMD")]
    pub checker: Option<String>,
    /// Further files to restore to their content at the crash. Those beside the pools and in the working directory always are.
    /// `*` matches `/` too. Repeatable.
    #[arg(long, value_name = "GLOB")]
    pub files: Vec<String>,
    /// Exit codes that mean success, separated by commas.
    #[arg(long, value_name = "CODES", value_delimiter = ',', default_values_t = [0], value_parser = exit_code)]
    pub exit_ok: Vec<i32>,
    /// Treat a line of output that matches this regular expression as a failure. Repeatable.
    #[arg(long, value_name = "REGEX")]
    pub fail_pattern: Vec<String>,
    /// How long to search for failing states: 30s, 5m, 2h, or `none`.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = budget)]
    pub budget: BudgetTime,
    /// Crash states to test at each crash point, separated by commas: program-order, guaranteed-only, inferred,
    /// few-lines:LINES[:STATES], torn, random:SEED:STATES, visible[:STATES].
    /// [default: program-order,guaranteed-only,few-lines:1:256,visible:64; with operations, inferred as well]
    #[arg(long, value_name = "LIST")]
    strategy: Option<String>,
    /// Test crash points in trace order. By default, new call paths come first.
    #[arg(long)]
    pub every: bool,
    /// Test at most N crash points per call path.
    #[arg(long, value_name = "N", conflicts_with = "every")]
    pub occurrences: Option<u64>,
    /// Where power may fail: before flushes and `fences`, or also after `stores`. [default: fences; with --model eadr: stores]
    #[arg(long, value_name = "WHERE")]
    points: Option<Density>,
    /// Also crash inside functions that create pools, such as pmemobj_create.
    #[arg(long)]
    pub creation: bool,
    /// What survives a power failure: `adr`, the memory controller's queues; `eadr`, the caches as well.
    #[arg(long, default_value = "adr", value_name = "MODEL")]
    pub model: ModelKind,
    /// Count only sfence and mfence as fences, not locked instructions.
    #[arg(long)]
    pub strict_fences: bool,
    /// Treat a recovery that runs longer as hung.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub timeout: Duration,
    /// Memory limit of a recovery, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub memory: u64,
    /// Process limit of a recovery.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub processes: u32,
    /// How to run recoveries: as forks of a warm process, or natively from the start each time.
    #[arg(long, value_enum, default_value_t = Engine::ForkServer)]
    pub engine: Engine,
    /// Number of recoveries to run in parallel. [default: the number of processors]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Run recovery on every state, even if an earlier run shows that it cannot tell the two apart.
    #[arg(long)]
    pub no_equivalence: bool,
    /// Also simulate power failures during recovery: record and crash the recoveries of some crash points.
    #[arg(long)]
    pub again: bool,
    /// Exit with 5 if nothing was found but the search was not exhaustive at every crash point.
    #[arg(long)]
    pub require_complete: bool,
    /// Folder for findings, for `fencepost replay`.
    #[arg(long, value_name = "FOLDER", default_value = FOLDER)]
    pub bundles: PathBuf,
    /// Write an HTML report to FILE: one self-contained page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// How to show progress on standard error.
    #[arg(long, value_enum, value_name = "STYLE", default_value_t)]
    pub progress: ProgressStyle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    ForkServer,
    #[value(alias = "plain")]
    Native,
}

/// A time, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetTime(pub Option<Duration>);

fn budget(text: &str) -> Result<BudgetTime, String> {
    if text == "none" { Ok(BudgetTime(None)) } else { duration(text).map(|time| BudgetTime(Some(time))) }
}

/// `500ms`, `30s`, `5m`, `2h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; write ms, s, m or h, as in 30s")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` is no time; write a number and a unit, as in 30s"))?;
    Duration::try_from_secs_f64(number * factor).map_err(|error| format!("`{text}`: {error}"))
}

impl CrashOptions {
    pub fn expectation(&self) -> Expectation {
        Expectation { exit_codes: self.exit_ok.clone(), patterns: self.fail_pattern.clone(), ..Expectation::default() }
    }

    /// What to run on the crash images of a trace. `recorded` is what the program answered while it was recorded, if that is
    /// known.
    pub fn plan(&self, reader: &TraceReader, recorded: Option<Vec<u8>>) -> Result<Plan, String> {
        self.resume.fits(&self.operations, self.recover.as_deref())?;
        let resumed = if self.resume.any() { Some(self.resume.resumed(reader, &self.operations)?) } else { None };
        let meta = &reader.tables().meta;
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let environment: Vec<_> = env::vars_os().collect();
        let line = |command: &str| command_line(command, directory(meta), environment.clone()).map_err(|e| text(&e));
        let default = || default_recovery(meta, environment.clone()).map_err(|e| text(&e));
        let recovery = match (&self.recover, Driver::of(meta)) {
            _ if resumed.is_some() => {
                let words = resumed.iter().flat_map(|resumed| &resumed.recovery).map(OsString::from);
                Command {
                    dir: directory(meta),
                    env: environment.clone(),
                    ..Command::here(&words.collect::<Vec<_>>()).ok_or("--resume is empty")?
                }
            }
            (Some(command), Some(driver)) => Command { args: driver.after(command).split_off(1), ..default()? },
            (Some(command), None) => line(command)?,
            (None, _) => default()?,
        };
        let checker = self.checker.as_deref().map(line).transpose()?;
        for (name, command) in [("recovery", Some(&recovery)), ("checker", checker.as_ref())] {
            let found = |command: &&Command| command.executable().is_some_and(|file| file.exists());
            if let Some(command) = command.filter(|command| !found(command)) {
                return Err(format!("the {name} command `{}` is not found", command.program.display()));
            }
        }
        let operations = self.operation_plan(resumed, recorded)?.map(Arc::new);
        Ok(Plan {
            recovery,
            checker,
            oracle: oracle(&self.expectation())?,
            limits: Limits {
                wall: self.timeout,
                // A run that only computes shall hang, not meet this limit first.
                cpu: self.timeout * 2 + Duration::from_secs(1),
                memory: self.memory << 20,
                processes: self.processes,
                output: if operations.is_some() { ANSWER_BYTES } else { Limits::default().output },
            },
            operations,
            names: reader.tables().paths.clone(),
            folders: self.folders(reader),
            served: None,
            pools: reader.tables().pools.iter().map(|pool| (pool.info.path.clone().into(), pool.info.len)).collect(),
            engine: match self.engine {
                Engine::ForkServer => EngineChoice::ForkServer,
                Engine::Native => EngineChoice::Native,
            },
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
        resumed: Option<Resumed>,
        recorded: Option<Vec<u8>>,
    ) -> Result<Option<OperationPlan>, String> {
        let operations_after = self.operations.operations_after;
        if let Some(Resumed { workload, asking, boundaries, .. }) = resumed {
            return Ok(Some(OperationPlan { workload, operations_after, recorded, asking, boundaries }));
        }
        let (asking, boundaries) = (Asking::Fed, BoundarySource::Events);
        let workload = self.operations.workload()?;
        Ok(workload.map(|workload| OperationPlan { workload, operations_after, recorded, asking, boundaries }))
    }

    /// The conditions of the run are needed. A list that cannot be read is told elsewhere.
    pub fn breaks_conditions(&self) -> bool {
        let list = StrategySpec::list(self.strategy()).unwrap_or_default();
        list.into_iter().any(StrategySpec::needs_conditions)
    }

    /// Which states to try.
    pub fn strategy(&self) -> &str {
        let operations = self.operations.ops.is_some() || self.operations.grammar.is_some();
        self.strategy.as_deref().unwrap_or(if operations { WITH_OPERATIONS } else { STRATEGIES })
    }

    /// As if the user had asked for these.
    pub fn without_conditions(&self) -> Option<CrashOptions> {
        let known = self.strategy.is_none() && self.breaks_conditions();
        known.then(|| CrashOptions { strategy: Some(STRATEGIES.to_owned()), ..self.clone() })
    }

    pub fn search_options(&self, plan: &Plan) -> Result<SearchOptions, String> {
        let fences = if self.strict_fences { Fences::Strict } else { Fences::All };
        Ok(SearchOptions {
            rules: Rules { model: self.model, fences },
            selection: Selection {
                density: self.points.unwrap_or(Density::of(self.model)),
                every: self.every,
                occurrences: self.occurrences,
                creation: self.creation,
                ..Selection::default()
            },
            strategies: StrategySpec::list(self.strategy()).map_err(|error| error.to_string())?,
            recovery: format!(
                "{:?} {:?} {:?} {:?}",
                words(&plan.recovery),
                plan.checker.as_ref().map(words),
                self.expectation(),
                plan.operations.as_ref().map(|operations| (
                    operations.workload.fingerprint(),
                    operations.operations_after,
                    &operations.asking
                ))
            ),
            ..SearchOptions::default()
        })
    }

    /// The exit of a search that can print what it found.
    pub fn end(&self, fails: bool, interrupted: bool, coverage: &Coverage) -> Exit {
        match (interrupted, fails, self.require_complete && !coverage.exhaustive) {
            (true, ..) => Exit::Interrupted,
            (false, true, _) => Exit::Findings,
            (false, false, true) => {
                render::warning(
                    "nothing was found, but not every crash point is exhausted, as --require-complete asks for",
                );
                render::help(
                    "give it a longer --budget, or a higher limit (--strategy visible:1000 or torn); the report says what was not explored",
                );
                Exit::Incomplete
            }
            (false, false, false) => Exit::Clean,
        }
    }

    /// Recoveries at a time.
    pub fn workers(&self, reader: &TraceReader) -> usize {
        if Driver::of(&reader.tables().meta).is_some_and(Driver::one_at_a_time) {
            return 1;
        }
        self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// How the folder is named in a command for the user; none: it need not be.
    pub fn bundles_option(&self) -> Option<String> {
        (self.bundles != *FOLDER).then(|| self.bundles.display().to_string())
    }

    pub fn shard_or_whole(shard: Option<Shard>) -> Shard {
        shard.unwrap_or(Shard::WHOLE)
    }
}

fn words(command: &Command) -> Vec<String> {
    let args = command.args.iter().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(command.program.display().to_string()).chain(args).collect()
}

fn exit_code(text: &str) -> Result<i32, String> {
    let code = text.trim().parse::<u8>();
    code.map(i32::from).map_err(|_| "exit codes are numbers from 0 to 255, as in 0,3".to_owned())
}

pub fn oracle(expectation: &Expectation) -> Result<Oracle, String> {
    let mut oracle = Oracle::default();
    if !expectation.exit_codes.is_empty() {
        oracle.exit_ok = expectation.exit_codes.iter().copied().collect();
    }
    for pattern in &expectation.patterns {
        oracle.patterns.push(Pattern::new(pattern).map_err(|error| error.to_string())?);
    }
    Ok(oracle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        for wrong in ["", "s", "5 parsecs", "-1s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(budget("none"), Ok(BudgetTime(None)));
    }
}
