//! What one recovery costs against the size of the pool: in Fencepost, and on a copy of the pool as a script would do it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;

use super::super::crash_pools::{EVERY_STATE, command, compile};
use super::super::crash_run::Fencepost;
use super::super::measure::median;
use super::plot::{Plot, Series};
use super::run::{self, words};
use crate::scratch::Scratch;

const SIZES: [u32; 4] = [8, 64, 256, 1024];
const QUICK_SIZES: [u32; 2] = [8, 256];
const REPETITIONS: u32 = 3;

/// CPU time of one recovery.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    mib: u32,
    fencepost: Duration,
    copy: Duration,
}

/// Prints the table.
pub fn run(quick: bool, executable: &Path, scratch: &Scratch, limit: Duration) -> anyhow::Result<Vec<Cost>> {
    let program = compile()?;
    println!("## One recovery against the size of the pool\n");
    println!(
        "| pool | Fencepost, CPU per crash state | copy the pool and start the program, CPU |\n| ---: | ---: | ---: |"
    );
    let mut all = Vec::new();
    for &mib in if quick { &QUICK_SIZES[..] } else { &SIZES[..] } {
        let folder = scratch.fresh("pools")?;
        let fencepost = Fencepost { executable, folder: &folder };
        fencepost.record(&command(&program, mib, "run"))?;
        let (mut served, mut copied) = (Vec::new(), Vec::new());
        for _ in 0..if quick { 1 } else { REPETITIONS } {
            let done = fencepost.crash(&command(&program, mib, "check"), &EVERY_STATE)?;
            served.push(done.cost.cpu / done.summary.recovery_runs.max(1) as u32);
            copied.push(copy(&program, mib, &folder, limit)?);
        }
        let cost = Cost { mib, fencepost: median(served), copy: median(copied) };
        println!("| {mib} MiB | {:.2} ms | {:.2} ms |", millis(cost.fencepost), millis(cost.copy));
        all.push(cost);
        fs::remove_dir_all(&folder)?;
    }
    println!();
    Ok(all)
}

/// Every byte is copied, as in a pool that is full; the one here has holes.
fn copy(program: &Path, mib: u32, folder: &Path, limit: Duration) -> anyhow::Result<Duration> {
    let script = format!("cp --sparse=never pool copy && exec {} copy {mib} check", program.display());
    let ran = run::run(&words(&["sh", "-c", &script]), folder, None, limit)?;
    ensure!(ran.exit_code == 0, "recovery fails on a copy: {}{}", ran.stdout, ran.stderr);
    Ok(ran.cpu)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub fn plot(costs: &[Cost]) -> Plot {
    let line = |name: &str, colour, cost: fn(&Cost) -> Duration| Series {
        name: name.to_owned(),
        colour,
        points: costs.iter().map(|of| (f64::from(of.mib), millis(cost(of)))).collect(),
    };
    Plot {
        title: "One recovery against the size of the pool (bench/pool.c)".to_owned(),
        x_label: "MiB of pool".to_owned(),
        y_label: "milliseconds of CPU time".to_owned(),
        x_ticks: costs.iter().map(|cost| f64::from(cost.mib)).collect(),
        series: vec![
            line("fencepost", "#3b82f6", |cost| cost.fencepost),
            line("copy and start", "#d97706", |cost| cost.copy),
        ],
    }
}
