//! `cargo xtask bench cover`: what coverage costs. The measuring is in `crates/fuzz/benches/cover.rs`, which needs the fuzzer's own executor;
//! a chore that links with it would compile the whole pipeline for every other chore.

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::build;

#[derive(Args, Debug)]
pub struct CoverBench {
    /// Only these maps.
    #[arg(value_name = "MAP")]
    maps: Vec<String>,
}

impl CoverBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let mut bench = build::cargo();
        bench.args(["bench", "--profile", "release", "--package", "fuzz", "--bench", "cover", "--"]).args(&self.maps);
        let status = bench.status().context("cannot run cargo")?;
        ensure!(status.success(), "the benchmark ended with {status}");
        Ok(ExitCode::SUCCESS)
    }
}
