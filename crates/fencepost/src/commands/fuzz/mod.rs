//! `fencepost fuzz`: generates workloads that reach new PM code, and checks each of them.

mod cover;
pub(super) mod discover;
mod elsewhere;
mod ending;
mod replay;
mod screen;
mod session;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::options::crash::duration;
use super::options::driver::DriverOptions;
use super::options::fleet::FleetOptions;
use super::options::gate::GateOptions;
use super::options::rule::RuleOptions;
use super::output::progress::ProgressStyle;
use crate::cli::FindingFormat;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  fencepost fuzz --grammar kv.toml -- ./kv pool          operations on standard input
  fencepost fuzz --ops seed.ops --time 1h -- ./kv pool   variations of these operations
  fencepost fuzz --dict words -- ./tool pool             bytes on standard input
  fencepost fuzz --seeds afl/queue -- ./tool pool @@     bytes in a file
  fencepost fuzz --solve -- ./tool pool                  solve for inputs where mutation is stuck
  fencepost fuzz --time 8h --fleet redis://main/night --ops seed.ops -- ./kv pool
  fencepost fuzz replay --out fuzz-out 000012            run a test case again
  fencepost fuzz cover fuzz-out                          PM code that it has not reached

Fencepost runs the program with new inputs: without a pool, on pools that earlier runs left, and on
crash images of those. It keeps inputs that reach new PM code, lints them and tests their crash
states, and reports every root cause once. The same command continues the campaign in --out.";

/// Generate inputs that reach new PM code, and check each of them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Fuzz {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    options: FuzzOptions,
}

#[derive(Debug, Subcommand)]
enum Other {
    Replay(replay::Replay),
    Cover(cover::Cover),
}

#[derive(Args, Clone, Debug)]
pub struct FuzzOptions {
    /// Generate operations from this grammar (see `fencepost ops generate --help`).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ops", "dict"])]
    grammar: Option<PathBuf>,
    /// File of operations to start from, one per line.
    #[arg(long, value_name = "FILE", conflicts_with = "dict")]
    ops: Option<PathBuf>,
    /// Folder of inputs to start from, such as an AFL++ corpus.
    #[arg(long, value_name = "FOLDER")]
    seeds: Option<PathBuf>,
    /// Dictionary in AFL's format, for inputs that are bytes.
    #[arg(long, value_name = "FILE")]
    dict: Option<PathBuf>,
    /// Pass each line of the input as an argument of the program.
    #[arg(long, conflicts_with_all = ["op_command", "op_socket"])]
    arguments: bool,
    #[command(flatten)]
    driver: DriverOptions,
    /// How long to fuzz: 30s, 10m, 2h.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    time: Duration,
    /// Stop after N executions instead, and check every test case that was kept.
    #[arg(long, value_name = "N", conflicts_with = "time")]
    executions: Option<u64>,
    /// Stop at the first finding.
    #[arg(long)]
    until_found: bool,
    /// Run in slices of N executions that exchange results after each round of sixteen: the result then does not depend on
    /// the number of jobs or machines. [default with --fleet: 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    slice: Option<u64>,
    /// Number of programs to run in parallel. [default: the number of processors]
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// Folder for test cases, images and findings; a campaign in it is continued.
    #[arg(short, long, value_name = "FOLDER", default_value = "fuzz-out")]
    out: PathBuf,
    /// Seed for random choices.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Share of the time spent on crash states, from 0 (none) to 1.
    #[arg(long, value_name = "PART", default_value_t = 0.5, value_parser = share)]
    check_share: f64,
    /// Time to search for failing states in one test case.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    check_budget: Duration,
    /// Where mutation is stuck, solve for inputs that reach new PM code (see `fencepost explore --help`).
    #[arg(long)]
    solve: bool,
    /// Crash states to test at each crash point (see `fencepost check --help`).
    #[arg(long, value_name = "LIST", default_value = fuzz::examine::STRATEGIES)]
    strategy: String,
    /// Command that opens the pools after a crash. [default: the command again, with empty input]
    #[arg(long, value_name = "CMD")]
    recover: Option<String>,
    /// Exit codes of a recovery that mean success, separated by commas.
    #[arg(long, value_name = "CODES", value_delimiter = ',', default_values_t = [0])]
    exit_ok: Vec<i32>,
    /// Treat files that match this glob as pools; `*` matches `/` too. Repeatable.
    /// [default: every file mapped shared and writable]
    #[arg(long = "pm", value_name = "GLOB")]
    pm: Vec<String>,
    /// Treat a run that takes longer as hung.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    timeout: Duration,
    /// Skip the lint.
    #[arg(long)]
    no_lint: bool,
    /// Output format of findings.
    #[arg(long, value_enum, default_value_t = FindingFormat::Human, value_name = "FORMAT")]
    message_format: FindingFormat,
    /// Write an HTML report to FILE, with a plot of coverage over time.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How to show progress on standard error.
    #[arg(long, value_enum, value_name = "STYLE", default_value_t)]
    progress: ProgressStyle,
    /// The program, and its arguments; `@@` stands for a file with the input.
    #[arg(last = true, required_unless_present = "op_command", value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    rules: RuleOptions,
    #[command(flatten)]
    gate: GateOptions,
    #[command(flatten)]
    fleet: FleetOptions,
    /// Perform a unit of a campaign.
    #[arg(long, value_name = "FOLDER", hide = true)]
    unit: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(part) if (0.0..=1.0).contains(&part) => Ok(part),
        _ => Err(format!("`{text}` is no part of the time; write a number from 0 to 1")),
    }
}

impl Fuzz {
    pub fn run(&self) -> Exit {
        match &self.other {
            Some(Other::Replay(replay)) => replay.run(),
            Some(Other::Cover(cover)) => cover.run(),
            None => session::run(&self.options),
        }
    }
}
