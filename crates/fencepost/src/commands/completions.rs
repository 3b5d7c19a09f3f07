//! `fencepost completions`: what a shell needs to complete the command line.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use clap_complete::generate;

use crate::exit::Exit;
use crate::help;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  source <(fencepost completions bash)
  fencepost completions zsh > ~/.zfunc/_fencepost
  fencepost completions fish > ~/.config/fish/completions/fencepost.fish";

/// Print the completions for a shell.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub fn run(&self) -> Exit {
        let generator = match self.shell {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Zsh => clap_complete::Shell::Zsh,
            Shell::Fish => clap_complete::Shell::Fish,
        };
        // Into memory first: the generator panics if it cannot write, as to a pipe that was closed.
        let mut script = Vec::new();
        generate(generator, &mut help::command(), "fencepost", &mut script);
        let mut out = io::stdout().lock();
        render::ended(out.write_all(&script).and_then(|()| out.flush()))
    }
}
