//! The command line of Fencepost. Each subcommand has its own file; what they do is in the other crates.

mod cli;
mod commands;
mod config;
mod exit;
mod render;

use std::panic;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic has already been reported by the default hook.
    panic::catch_unwind(run).unwrap_or(exit::Exit::Internal).into()
}

fn run() -> exit::Exit {
    match config::parse() {
        Ok(cli) => cli.run(),
        Err(error) => {
            render::error(error);
            exit::Exit::Usage
        }
    }
}
