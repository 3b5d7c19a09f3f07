//! `cargo xtask bench lint`: how fast one core lints a trace from disk, and that memory does not grow with the trace.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use targets::pmdk;

use crate::bench::measure::{self, median};
use crate::build;
use crate::scratch::Scratch;

/// What the project asks for.
const GOAL_EVENTS_PER_SECOND: f64 = 25e6;

/// What the rules about transactions look at and these programs call; `lint -- CMD` would watch it, too.
const WATCHED: [&str; 9] =
    ["begin", "commit", "process", "end", "add_range", "add_range_direct", "alloc", "zalloc", "free"];

#[derive(Args, Debug)]
pub struct LintBench {
    /// Operations of the shortest run.
    #[arg(long, default_value_t = 15_000)]
    operations: u32,
    /// How many times longer the runs are.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100])]
    lengths: Vec<u32>,
    /// PMDK's map examples to record. The pool of most others is too small for 1.5 million operations.
    #[arg(long = "map", value_name = "NAME", default_values_t = ["btree".to_owned()])]
    maps: Vec<String>,
    /// Times that each trace is linted; the table shows their median.
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<std::path::PathBuf>,
}

/// One trace, linted.
struct Row {
    events: u64,
    trace_bytes: u64,
    cpu: Duration,
    peak_kib: i64,
}

impl LintBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let mapcli = pmdk::build_mapcli(&build::targets_folder()?)?;
        let scratch = Scratch::new("bench-lint")?;
        println!(
            "{:<16} {:>10} {:>12} {:>9} {:>9} {:>12} {:>9}",
            "map", "operations", "events", "trace", "CPU", "events/s", "memory"
        );
        let mut slowest = f64::INFINITY;
        for map in &self.maps {
            for length in &self.lengths {
                let operations = self.operations * length;
                let row = self.row(&fencepost, &mapcli, map, operations, &scratch.fresh(map)?)?;
                let speed = row.events as f64 / row.cpu.as_secs_f64();
                // A short trace is mostly the start of the process and the naming of code.
                if row.events >= 1_000_000 {
                    slowest = slowest.min(speed);
                }
                println!(
                    "{map:<16} {operations:>10} {:>12} {:>6.1} MB {:>7.2} s {:>10.1} M {:>5.1} MiB",
                    row.events,
                    row.trace_bytes as f64 / 1e6,
                    row.cpu.as_secs_f64(),
                    speed / 1e6,
                    row.peak_kib as f64 / 1024.0
                );
            }
        }
        println!(
            "\nCPU: user and system time of `fencepost lint TRACE` bound to one core; median of {} runs.",
            self.runs
        );
        println!(
            "Memory: largest resident set. It holds the lines that are dirty at one time, eight bytes for each line that was"
        );
        println!("ever flushed (the map grows with the operations) and the call paths; nothing per event.");
        let ok = slowest >= GOAL_EVENTS_PER_SECOND;
        println!(
            "Goal: at least {:.0} M events/s: {}",
            GOAL_EVENTS_PER_SECOND / 1e6,
            if ok { "met" } else { "not met" }
        );
        Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn row(&self, fencepost: &Path, mapcli: &Path, map: &str, operations: u32, folder: &Path) -> anyhow::Result<Row> {
        let workload = folder.join("workload");
        fs::write(&workload, pmdk::workload(operations))?;
        let mut record = Command::new(fencepost);
        record.args(["record", "--quiet", "--exit-with-target", "-o", "trace"]);
        for name in WATCHED {
            record.arg("--watch").arg(format!("pmemobj_tx_{name}"));
        }
        record.arg("--").arg(mapcli).args([map, "pool", "1"]);
        record.env("PMEM_IS_PMEM_FORCE", "1").current_dir(folder).stdin(File::open(&workload)?).stdout(Stdio::null());
        ensure!(record.status()?.success(), "{map} with {operations} operations cannot be recorded: {record:?}");
        let events = events(fencepost, folder)?;
        let mut cpu = Vec::new();
        let mut peak_kib = 0;
        for _ in 0..self.runs {
            let mut lint = Command::new("taskset");
            lint.args(["-c", "0"]).arg(fencepost).args(["lint", "--message-format", "json", "trace"]);
            let cost = measure::run(lint.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()))?;
            // 1: there are findings.
            ensure!(cost.exit_code <= 1, "{lint:?}: exit code {}", cost.exit_code);
            cpu.push(cost.cpu);
            peak_kib = peak_kib.max(cost.peak_kib);
        }
        Ok(Row { events, trace_bytes: fs::metadata(folder.join("trace"))?.len(), cpu: median(cpu), peak_kib })
    }
}

/// How many events the trace has, as `trace stat` says.
fn events(fencepost: &Path, folder: &Path) -> anyhow::Result<u64> {
    let mut stat = Command::new(fencepost);
    stat.args(["trace", "stat", "--message-format", "json", "trace"]).current_dir(folder);
    let output = stat.output().with_context(|| format!("cannot run {stat:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some((_, rest)) = text.split_once("\"events\":") else { bail!("{stat:?} says nothing about events: {text}") };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().with_context(|| format!("{stat:?}: {text}"))
}
