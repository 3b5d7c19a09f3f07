//! `cargo xtask conformance`: the conformance test with release-mode recorders.

use std::process::ExitCode;

use anyhow::Context as _;

use crate::build;

pub fn run(args: &[String]) -> anyhow::Result<ExitCode> {
    let mut command = build::cargo();
    command.args(["test", "--release", "--package", "fencepost", "--test", "conformance", "--"]).args(args);
    let status = command.status().context("cannot run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
