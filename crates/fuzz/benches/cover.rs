//! What coverage costs: processor time of PMDK's maps in coverage mode, as the fuzzer runs them, against the same runs natively.
//!
//! `cargo xtask bench cover`. Both sides run each input several times, in turns; the first run of the fork server, which translates, is left out.
//! The input is much longer than those of a campaign, so that start and fork do not count: this is the cost of counting.

use std::ffi::OsString;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

use fuzz::execute::{Delivery, Executor, Subject};
use fuzz::image::Image;
use recover::command::{Command, Input};
use recover::limits::Limits;
use targets::pmdk;
use verdict::end::End;

const OPERATIONS: u32 = 20_000;
const ROUNDS: usize = 5;
/// Runs of each side in a round.
const RUNS: usize = 4;
/// PMDK treats an ordinary file as PM; libc goes the same way with and without the engine.
const ENVIRONMENT: [(&str, &str); 3] =
    [("PATH", "/usr/bin:/bin"), ("PMEM_IS_PMEM_FORCE", "1"), ("GLIBC_TUNABLES", "glibc.pthread.rseq=0")];

fn main() {
    // `cargo bench` passes options of its own.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let space = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-cover");
    fs::create_dir_all(&space).expect("a folder for the pools");
    let program = match pmdk::build_mapcli(&space) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("PMDK's maps cannot be built: {error}");
            process::exit(2);
        }
    };
    println!("processor time of {OPERATIONS} operations, medians of {ROUNDS} times {RUNS} runs in turns\n");
    println!("| map | native | with coverage | times |\n| --- | ---: | ---: | ---: |");
    let mut ratios = Vec::new();
    for map in pmdk::MAPS.iter().filter(|map| wanted.is_empty() || wanted.iter().any(|name| name == *map)) {
        let (native, covered) = measure(&program, map, &space);
        ratios.push(covered / native);
        println!("| {map} | {native:.3} s | {covered:.3} s | {:.2} |", covered / native);
    }
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp();
    println!("\ngeometric mean: {mean:.2}");
}

/// Seconds natively and with coverage.
fn measure(program: &Path, map: &str, space: &Path) -> (f64, f64) {
    let input = pmdk::workload(OPERATIONS);
    let pool = space.join(format!("{map}.pool"));
    let operations = space.join("operations");
    fs::write(&operations, &input).expect("the operations can be written");
    let arguments: Vec<OsString> = vec![map.into(), pool.clone().into(), "1".into()];
    let environment = ENVIRONMENT.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let command = Command {
        program: program.to_owned(),
        args: arguments.clone(),
        env: environment.to_vec(),
        dir: space.to_owned(),
        stdin: Input::Empty,
    };
    let subject =
        Subject { command, delivery: Delivery::Stdin, pools: vec![PathBuf::from(&pool)], limits: Limits::default() };
    let mut executor = Executor::new(subject).expect("a slot for the pool");
    let mut covered_run = || {
        let execution = executor.run(input.as_bytes(), &Image::none(1)).expect("the fork server runs");
        assert_eq!(execution.report.end, End::Exited(0), "the program ends by itself");
    };
    let native_run = || {
        let _ = fs::remove_file(&pool);
        let mut run = process::Command::new(program);
        run.args(&arguments).env_clear().envs(ENVIRONMENT).current_dir(space);
        run.stdin(File::open(&operations).expect("it was written above")).stdout(Stdio::null());
        let status = run.status().expect("the program can be started");
        assert!(status.success(), "{map}: {status}");
    };
    let mut native = Vec::new();
    let mut covered = Vec::new();
    for round in 0..=ROUNDS {
        native.push(cost_of(native_run));
        covered.push(cost_of(&mut covered_run));
        if round == 0 {
            native.clear();
            covered.clear();
        }
    }
    (median(native), median(covered))
}

/// Seconds of all descendants for one of several runs; the kernel counts in ticks.
fn cost_of(mut run: impl FnMut()) -> f64 {
    let before = descendants();
    (0..RUNS).for_each(|_| run());
    (descendants() - before) / RUNS as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Seconds that all processes below this one have used, with those that they have waited for: the fork server lives on.
fn descendants() -> f64 {
    let mut ticks = own_children();
    let mut parents = vec![process::id()];
    let stats: Vec<(u32, u32, u64)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let (parent, ticks) = times(pid, 11..15)?;
            Some((pid, parent, ticks))
        })
        .collect();
    while let Some(parent) = parents.pop() {
        for (pid, _, used) in stats.iter().filter(|(_, of, _)| *of == parent) {
            ticks += used;
            parents.push(*pid);
        }
    }
    // SAFETY: takes no pointers.
    ticks as f64 / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64
}

/// What this process has waited for.
fn own_children() -> u64 {
    times(process::id(), 13..15).map_or(0, |(_, ticks)| ticks)
}

/// A process's parent and the sum of some of its times, proc_pid_stat(5).
fn times(pid: u32, which: Range<usize>) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold anything.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = fields.get(which)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some((fields.get(1)?.parse().ok()?, ticks))
}
