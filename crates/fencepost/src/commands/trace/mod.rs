//! `fencepost trace`: inspects recordings.

mod dump;
mod stat;
mod verify;

use clap::Subcommand;

use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  fencepost trace stat run.fptrace            what it holds
  fencepost trace dump run.fptrace | less     every event
  fencepost trace verify run.fptrace          do the events explain the final pools?";

/// Inspect a recording.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Trace {
    Stat(stat::Stat),
    Dump(dump::Dump),
    Verify(verify::Verify),
}

impl Trace {
    pub fn run(&self) -> Exit {
        match self {
            Trace::Stat(stat) => stat.run(),
            Trace::Dump(dump) => dump.run(),
            Trace::Verify(verify) => verify.run(),
        }
    }
}
