//! `fencepost fuzz`: workloads that nobody wrote, towards code that works on persistent memory.

mod discover;
mod replay;
mod screen;
mod session;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::options::crash::duration;
use super::options::driver::DriverOptions;
use super::options::gate::GateOptions;
use super::options::rule::RuleOptions;
use super::output::progress::ProgressStyle;
use crate::cli::FindingFormat;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  fencepost fuzz --grammar kv.toml -- ./kv pool          operations on standard input
  fencepost fuzz --ops seed.ops --time 1h -- ./kv pool   more like these
  fencepost fuzz --dict words -- ./tool pool             bytes on standard input
  fencepost fuzz --seeds afl/queue -- ./tool pool @@     bytes in a file
  fencepost fuzz replay --out fuzz-out 000012            run a case again

What it does: runs the program again and again with other inputs, on no pool, on pools that earlier
runs left, and on what a power failure leaves of them. Inputs that reach new PM code are kept; they
are checked for misuse and for what a power failure breaks. Every root cause is told once. The same
command goes on with what is in --out.";

/// Make inputs that reach new PM code, and check each of them.
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
}

#[derive(Args, Clone, Debug)]
pub struct FuzzOptions {
    /// What operations look like (see `fencepost ops generate --help`).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ops", "dict"])]
    grammar: Option<PathBuf>,
    /// Operations to begin with, one per line; others are made like them.
    #[arg(long, value_name = "FILE", conflicts_with = "dict")]
    ops: Option<PathBuf>,
    /// Inputs to begin with: a folder of files, or a corpus of AFL++.
    #[arg(long, value_name = "FOLDER")]
    seeds: Option<PathBuf>,
    /// Words that inputs are made of, in AFL's format. Inputs are bytes.
    #[arg(long, value_name = "FILE")]
    dict: Option<PathBuf>,
    /// Each line of the input is an argument of the program.
    #[arg(long, conflicts_with_all = ["op_command", "op_socket"])]
    arguments: bool,
    #[command(flatten)]
    driver: DriverOptions,
    /// How long to go on: 30s, 10m, 2h.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    time: Duration,
    /// Go on for so many executions instead, and check all that is kept.
    #[arg(long, value_name = "N", conflicts_with = "time")]
    executions: Option<u64>,
    /// Programs at a time. [default: the number of processors]
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// Where cases, images and findings go. What is there is gone on with.
    #[arg(short, long, value_name = "FOLDER", default_value = "fuzz-out")]
    out: PathBuf,
    /// Another seed makes other inputs.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Part of the time for checks, from 0 (none) to 1.
    #[arg(long, value_name = "PART", default_value_t = 0.5, value_parser = share)]
    check_share: f64,
    /// For the crash search in one case.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    check_budget: Duration,
    /// Which states to try at each crash point (see `check`).
    #[arg(long, value_name = "LIST", default_value = fuzz::examine::STRATEGIES)]
    strategy: String,
    /// The command that opens the pools after a crash. [default: the command again, with an empty input]
    #[arg(long, value_name = "CMD")]
    recover: Option<String>,
    /// Exit codes of a recovery that mean success, separated by commas.
    #[arg(long, value_name = "CODES", value_delimiter = ',', default_values_t = [0])]
    exit_ok: Vec<i32>,
    /// Files that are pools: a glob over the path. [default: every file that is mapped shared and writable]
    #[arg(long = "pm", value_name = "GLOB")]
    pm: Vec<String>,
    /// A run that takes longer hangs.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    timeout: Duration,
    /// Do not look for misuse.
    #[arg(long)]
    no_lint: bool,
    /// How findings are printed.
    #[arg(long, value_enum, default_value_t = FindingFormat::Human, value_name = "FORMAT")]
    message_format: FindingFormat,
    /// How progress is shown, on standard error.
    #[arg(long, value_enum, value_name = "STYLE", default_value_t)]
    progress: ProgressStyle,
    /// The program, and its arguments; `@@` stands for a file with the input.
    #[arg(last = true, required_unless_present = "op_command", value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    rules: RuleOptions,
    #[command(flatten)]
    gate: GateOptions,
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
            None => session::run(&self.options),
        }
    }
}
