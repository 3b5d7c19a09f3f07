//! What the command line looks like. Help, completions and manual pages come from these definitions.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::commands;
use crate::exit::Exit;

/// With what a bug report needs.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit:  ",
    env!("FENCEPOST_BUILD_COMMIT"),
    "\ntarget:  ",
    env!("FENCEPOST_BUILD_TARGET"),
    "\nprofile: ",
    env!("FENCEPOST_BUILD_PROFILE"),
);

const AFTER_HELP: &str = "\
Examples:
  fencepost demo                     watch it find a bug
  fencepost check -- ./kv pool       check a program; its recovery is the same command again
  fencepost check --recover './kv pool verify' -- ./kv pool load
  fencepost explain FP0602           what a finding means

Every command takes --color WHEN (auto, always, never) and --config FILE. Options can also be set
as FENCEPOST_OPTION in the environment and in fencepost.toml. `fencepost COMMAND --help` shows the
options that matter most, `--help-all` every one, `fencepost man COMMAND` the manual page.

Exit codes:
  0    clean
  1    findings (trace verify: the trace does not explain the final pools)
  2    usage error or unreadable input
  3    the target failed or could not be recorded
  4    no persistent-memory activity
  5    failures without a confirmed cause, or an incomplete search (--require-complete)
  70   internal error
  130  interrupted (the recording is saved)";

/// Find crash-consistency bugs in programs that keep their state in persistent memory.
#[derive(Debug, Parser)]
#[command(name = "fencepost", version, long_version = LONG_VERSION, after_help = AFTER_HELP, propagate_version = true)]
pub struct Cli {
    /// When to use color.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    #[arg(env = "FENCEPOST_COLOR", hide_env = true, display_order = 900)]
    color: Color,
    /// Configuration file. [default: fencepost.toml in this or the nearest parent directory]
    #[arg(long, global = true, value_name = "FILE")]
    #[arg(env = "FENCEPOST_CONFIG", hide_env = true, display_order = 901)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Color {
    /// If the output is a terminal and NO_COLOR is unset.
    Auto,
    Always,
    Never,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MessageFormat {
    /// For people.
    Human,
    /// One JSON object per line.
    Json,
}

/// Output format of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FindingFormat {
    /// For people.
    Human,
    /// One JSON object per line.
    Json,
    /// One SARIF 2.1.0 document, for code hosts and editors.
    Sarif,
    /// One JUnit XML document, for CI servers.
    Junit,
}

impl FindingFormat {
    /// Whether nothing else may be on standard output.
    pub fn is_document(self) -> bool {
        matches!(self, FindingFormat::Sarif | FindingFormat::Junit)
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Record(Box<commands::record::Record>),
    Check(Box<commands::check::Check>),
    Lint(Box<commands::lint::Lint>),
    Crash(Box<commands::crash::Crash>),
    Fuzz(Box<commands::fuzz::Fuzz>),
    Replay(commands::replay::Replay),
    Debug(commands::debug::Debug),
    Report(commands::report::Report),
    Explain(commands::explain::Explain),
    Explore(Box<commands::explore::Explore>),
    #[command(subcommand)]
    Trace(commands::trace::Trace),
    #[command(subcommand)]
    Ops(commands::ops::Ops),
    #[command(subcommand)]
    Fs(commands::fs::Fs),
    Worker(commands::worker::Worker),
    #[command(subcommand)]
    Fleet(commands::fleet::Fleet),
    Doctor(commands::doctor::Doctor),
    Demo(commands::demo::Demo),
    Completions(commands::completions::Completions),
    Man(commands::man::Man),
    #[command(subcommand, hide = true)]
    Drive(commands::drive::Drive),
}

impl Cli {
    /// Runs the command and says how it ended.
    pub fn run(self) -> Exit {
        match self.color {
            Color::Auto => {}
            Color::Always => anstream::ColorChoice::Always.write_global(),
            Color::Never => anstream::ColorChoice::Never.write_global(),
        }
        match self.command {
            Command::Record(record) => record.run(),
            Command::Check(check) => check.run(),
            Command::Lint(lint) => lint.run(),
            Command::Crash(crash) => crash.run(),
            Command::Fuzz(fuzz) => fuzz.run(),
            Command::Replay(replay) => replay.run(),
            Command::Debug(debug) => debug.run(),
            Command::Report(report) => report.run(),
            Command::Explain(explain) => explain.run(),
            Command::Explore(explore) => explore.run(),
            Command::Trace(trace) => trace.run(),
            Command::Ops(ops) => ops.run(),
            Command::Fs(fs) => fs.run(),
            Command::Worker(worker) => worker.run(),
            Command::Fleet(fleet) => fleet.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Demo(demo) => demo.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
            Command::Drive(drive) => drive.run(),
        }
    }
}
