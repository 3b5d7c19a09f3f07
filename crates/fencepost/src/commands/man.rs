//! `fencepost man`: prints the manual pages, in roff.

use std::io::{self, Write};

use clap::Args;
use clap_mangen::Man as Page;

use crate::config::did_you_mean;
use crate::exit::Exit;
use crate::help;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost man | man -l -
  fencepost man check | man -l -
  fencepost man trace dump > fencepost-trace-dump.1";

const SOURCE: &str = concat!("fencepost ", env!("CARGO_PKG_VERSION"));

/// Print the manual page of a command; without one, that of fencepost.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Man {
    /// The command, and its subcommand if any.
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

impl Man {
    pub fn run(&self) -> Exit {
        let mut root = help::command();
        // Gives every command its full name (`fencepost trace dump`) and the options that all have.
        root.build();
        let mut command = &root;
        for name in &self.command {
            let Some(found) = command.find_subcommand(name) else {
                let hint = did_you_mean(name, command.get_subcommands().map(clap::Command::get_name));
                render::error(format_args!("there is no command `{}`{hint}", self.command.join(" ")));
                render::help("`fencepost help` lists all commands");
                return Exit::Usage;
            };
            command = found;
        }
        render::ended(print(Page::new(command.clone())))
    }
}

fn print(page: Page) -> io::Result<()> {
    let mut roff = Vec::new();
    page.source(SOURCE).render(&mut roff)?;
    // The examples are in columns, which filling would destroy.
    let roff = String::from_utf8_lossy(&roff).replace("\n.SH EXTRA\n", "\n.SH EXTRA\n.nf\n");
    let mut out = io::stdout().lock();
    out.write_all(roff.as_bytes())?;
    out.flush()
}
