//! The command line of Fencepost. Each subcommand has its own file; what they do is in the other crates.

mod cli;
mod commands;
mod exit;
mod render;

use std::panic;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // A panic has already been reported by the default hook.
    panic::catch_unwind(|| cli::Cli::parse().run()).unwrap_or(exit::Exit::Internal).into()
}
