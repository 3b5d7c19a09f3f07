//! The cost of a crash state in a small and in a large pool with the same changes (`bench/pool.c`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::crash_run::Fencepost;
use super::measure::median;
use crate::build;
use crate::scratch::Scratch;

/// Sizes of the two pools, in MiB.
const SIZES: [u32; 2] = [8, 1024];

/// What the project asks for: so many times the cost of a state in the small pool.
const GOAL: f64 = 1.5;

pub(super) const EVERY_STATE: [&str; 3] = ["--no-equivalence", "--strategy", "few-lines:2"];

/// CPU and wall time of a state, by run.
#[derive(Debug, Default)]
struct Costs {
    cpu: Vec<Duration>,
    wall: Vec<Duration>,
}

/// Prints the figures; whether the goal is met.
pub fn run(executable: &Path, scratch: &Scratch, runs: u32) -> anyhow::Result<bool> {
    let program = compile()?;
    let mut all = [Costs::default(), Costs::default()];
    println!("## The same changes in pools of {} and {} MiB", SIZES[0], SIZES[1]);
    for size in SIZES {
        let folder = scratch.fresh(&format!("pool-{size}"))?;
        Fencepost { executable, folder: &folder }.record(&command(&program, size, "run"))?;
    }
    // In turn, so that other work on the machine meets both alike.
    for run in 0..runs {
        for (size, costs) in SIZES.into_iter().zip(&mut all) {
            let folder = scratch.path().join(format!("pool-{size}"));
            let fencepost = Fencepost { executable, folder: &folder };
            let done = fencepost.crash(&command(&program, size, "check"), &EVERY_STATE)?;
            ensure!(done.summary.findings.is_empty(), "the program is correct, but: {:?}", done.summary.findings);
            let states = done.summary.recovery_runs.max(1) as u32;
            costs.cpu.push(done.cost.cpu / states);
            costs.wall.push(done.wall / states);
            if run == 0 {
                done.warn_of_native_runs(&format!("{size} MiB"));
            }
        }
    }
    let [small, large] = all.map(|costs| (median(costs.cpu), median(costs.wall)));
    for (size, (cpu, wall)) in SIZES.into_iter().zip([small, large]) {
        println!(
            "{size:>5} MiB: {:.2} ms CPU, {:.2} ms wall per state",
            cpu.as_secs_f64() * 1e3,
            wall.as_secs_f64() * 1e3
        );
    }
    let ratio = |large: Duration, small: Duration| large.as_secs_f64() / small.as_secs_f64();
    let worst = ratio(large.0, small.0).max(ratio(large.1, small.1));
    println!("ratio: {:.2}× CPU, {:.2}× wall (goal: ≤ {GOAL}×)\n", ratio(large.0, small.0), ratio(large.1, small.1));
    for size in SIZES {
        fs::remove_dir_all(scratch.path().join(format!("pool-{size}")))?;
    }
    Ok(worst <= GOAL)
}

pub(super) fn compile() -> anyhow::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/pool.c");
    let folder = build::targets_folder()?;
    fs::create_dir_all(&folder)?;
    let output = folder.join("pool");
    let mut command = Command::new("cc");
    command.args(["-O1", "-g", "-Wall", "-Wextra", "-o"]).arg(&output).arg(source);
    let done = command.output().context("cannot run cc")?;
    ensure!(done.status.success(), "pool.c: {}", String::from_utf8_lossy(&done.stderr));
    Ok(output)
}

pub(super) fn command(program: &Path, size: u32, what: &str) -> Vec<String> {
    vec![program.display().to_string(), "pool".to_owned(), size.to_string(), what.to_owned()]
}
