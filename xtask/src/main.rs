//! Project tasks: `cargo xtask --help` lists them.

mod bench;
mod bench_lint;
mod blind;
mod book;
mod build;
mod cli;
mod conformance;
mod file_systems;
mod fs_bugs;
mod fuzz_maps;
mod fuzz_targets;
mod kernel_fs;
mod licences;
mod pmdk;
mod real_programs;
mod scratch;
mod slurm;
mod solve_targets;
mod test;
mod vm_kit;

use clap::Parser as _;

fn main() -> anyhow::Result<std::process::ExitCode> {
    cli::Cli::parse().run()
}
