//! `fencepost fs run`: runs operations against a directory.

use std::io;
use std::path::PathBuf;

use clap::Args;

use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  printf 'creat foo\\nwrite foo 5 100 seed=3\\nwalk\\n' | fencepost fs run /tmp/empty
  fencepost fs run /mnt < operations

Each line is answered: `ok`, `ok 100` (bytes), or the name of the error. `walk` prints the whole
tree; `usable` makes a file in every directory and then removes EVERYTHING.";

/// Run operations from standard input against a directory, and answer each.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Execute {
    /// The root of the file system, or any directory.
    #[arg(value_name = "DIR")]
    root: PathBuf,
}

impl Execute {
    pub fn run(&self) -> Exit {
        if !self.root.is_dir() {
            render::error(format_args!("{} is no directory", self.root.display()));
            return Exit::Usage;
        }
        render::ended(fs::agent::run(&self.root, &mut io::stdin().lock(), &mut io::stdout().lock()))
    }
}
