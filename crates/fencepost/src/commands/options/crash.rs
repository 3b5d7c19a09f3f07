//! How crashes are simulated: the options that `check` and `crash` share.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::super::output::progress::ProgressStyle;
use super::gate::Judged;
use super::operation::OperationOptions;
use super::resume::ResumeOptions;
use check::checked::Checked;
use check::operations::Operations;
use check::settings::Settings;
use clap::{Args, ValueEnum};
use crash::points::Density;
use crash::strategy::StrategySpec;
use evidence::bundle::FOLDER;
use persistency::model::{Fences, ModelKind};
use runner::plan::EngineChoice;

use crate::exit::Exit;
use crate::render;

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
    /// few-lines:LINES[:STATES], few-sectors:SECTORS[:STATES], torn, random:SEED:STATES, visible[:STATES].
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
    /// Also simulate power failures during recovery: record and crash the recoveries of some crash points, in a quarter of the
    /// budget. By default, two recoveries, if nothing else is found.
    #[arg(long)]
    pub again: bool,
    /// Exit with 5 if nothing was found but the search was not exhaustive at every crash point.
    #[arg(long)]
    pub require_complete: bool,
    /// Folder for findings, for `fencepost replay`.
    #[arg(long, value_name = "FOLDER", default_value = FOLDER)]
    pub bundles: PathBuf,
    /// How the user names that folder, if they go to another one first.
    #[arg(skip)]
    pub bundles_shown: Option<PathBuf>,
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

impl BudgetTime {
    /// No more than is left until then; a second at least.
    pub fn until(self, deadline: Option<Instant>) -> BudgetTime {
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()).max(Duration::from_secs(1)));
        BudgetTime(self.0.into_iter().chain(left).min())
    }
}

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
    /// What the options say about crashes.
    pub fn settings(&self) -> Result<Settings, String> {
        let strategies = self.strategy.as_deref().map(StrategySpec::list).transpose();
        Ok(Settings {
            recover: self.recover.clone(),
            checker: self.checker.clone(),
            files: self.files.clone(),
            exit_ok: self.exit_ok.clone(),
            fail_patterns: self.fail_pattern.clone(),
            budget: self.budget.0,
            strategies: strategies.map_err(|error| error.to_string())?,
            every: self.every,
            occurrences: self.occurrences,
            points: self.points,
            creation: self.creation,
            model: self.model,
            fences: if self.strict_fences { Fences::Strict } else { Fences::All },
            timeout: self.timeout,
            memory: self.memory << 20,
            processes: self.processes,
            engine: match self.engine {
                Engine::ForkServer => EngineChoice::ForkServer,
                Engine::Native => EngineChoice::Native,
            },
            jobs: self.jobs,
            equivalence: !self.no_equivalence,
            again: self.again,
            operations_after: self.operations.operations_after,
            skip_operations: self.operations.skipped(),
            bundles: self.bundles.clone(),
            bundles_shown: self.bundles_shown.clone(),
        })
    }

    /// What they say about operations.
    pub fn operations(&self) -> Result<Option<Operations>, String> {
        self.resume.fits(&self.operations, self.recover.as_deref())?;
        if self.resume.any() {
            return self.resume.operations(&self.operations).map(Operations::Own).map(Some);
        }
        Ok(self.operations.workload()?.map(Operations::Fed))
    }

    /// The exit of a search that can print what it found.
    pub fn end(&self, judged: &Judged, interrupted: bool, checked: &Checked) -> Exit {
        match (interrupted, judged.any_fails(), self.require_complete && !checked.coverage.exhaustive) {
            (true, ..) => Exit::Interrupted,
            (false, true, _) => Exit::Findings,
            (false, false, _) if checked.is_open() && judged.may_fail() => {
                render::warning("recovery failed, but no time was left to find and confirm a cause");
                render::help("give it a longer --budget, or a shorter --timeout if it hangs");
                Exit::Incomplete
            }
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
}

fn exit_code(text: &str) -> Result<i32, String> {
    let code = text.trim().parse::<u8>();
    code.map(i32::from).map_err(|_| "exit codes are numbers from 0 to 255, as in 0,3".to_owned())
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
        assert_eq!(BudgetTime(None).until(None), BudgetTime(None));
        let (now, second) = (Instant::now(), Some(Duration::from_secs(1)));
        assert_eq!(BudgetTime(None).until(Some(now)), BudgetTime(second));
        assert_eq!(BudgetTime(second).until(Some(now + Duration::from_secs(600))), BudgetTime(second));
    }
}
