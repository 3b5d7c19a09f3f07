//! The command line of Fencepost. Each subcommand has its own file; what they do is in the other crates.

mod cli;
mod commands;
mod config;
mod exit;
mod help;
mod render;

use std::panic::{self, UnwindSafe};
use std::process::ExitCode;

use exit::Exit;

fn main() -> ExitCode {
    // SAFETY: this is the first thing that the process does: there is no other thread.
    unsafe { fleet::redis::address::take_credentials() };
    guarded(run).into()
}

/// What panicked has already been told by the default hook.
fn guarded(run: impl FnOnce() -> Exit + UnwindSafe) -> Exit {
    panic::catch_unwind(run).unwrap_or_else(|_| {
        render::error(
            "Fencepost panicked, which says nothing about your program; please report it with the lines above and the \
             command, unless the machine has run out of memory, processes or threads",
        );
        Exit::Internal
    })
}

fn run() -> Exit {
    match config::parse() {
        Ok(cli) => cli.run(),
        Err(error) => {
            render::error(error);
            Exit::Usage
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error() {
        assert_eq!(guarded(|| panic!("on purpose")).code(), 70);
        assert_eq!(guarded(|| Exit::Clean), Exit::Clean);
    }
}
