//! `cargo xtask bench crash`: what recoveries cost, whether the size of a pool matters, and Mumak's workload.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use super::crash_run::Fencepost;
use super::{crash_mumak, crash_pools, crash_small};
use crate::build;
use crate::scratch::Scratch;

#[derive(Args, Debug)]
pub struct CrashBench {
    /// Operations of Mumak's workload.
    #[arg(long, default_value_t = 150_000)]
    operations: u32,
    /// A form that takes less than a minute: 1,500 operations, one run.
    #[arg(long, conflicts_with_all = ["operations", "runs"])]
    quick: bool,
    /// Runs of the small programs; the median is shown.
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// PMDK's map examples to check.
    #[arg(long = "map", value_name = "NAME", default_values_t = crash_mumak::MAPS.map(str::to_owned))]
    maps: Vec<String>,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

impl CrashBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let (runs, operations) = if self.quick { (1, 1500) } else { (self.runs.max(1), self.operations) };
        let scratch = Scratch::new("bench-crash")?;
        let small = scratch.fresh("small")?;
        let met = [
            crash_small::run(&Fencepost { executable: &fencepost, folder: &small }, runs)?,
            crash_pools::run(&fencepost, &scratch, runs)?,
            crash_mumak::run(&fencepost, &scratch, &self.maps, operations)?,
        ];
        println!(
            "CPU: user and system time of all processes, those of the recoveries included. Memory: largest resident set of"
        );
        println!(
            "a process; pages of a pool count where they are mapped. Points: crash points, and those with different call paths."
        );
        let all = met.iter().all(|&met| met);
        println!("Goals: {}", if all { "all met" } else { "not all met" });
        Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
