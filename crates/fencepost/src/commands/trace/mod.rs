//! `fencepost trace`: looks into recordings.

mod dump;
mod stat;
mod verify;

use clap::Subcommand;

use crate::exit::Exit;

/// Look into a recording.
#[derive(Debug, Subcommand)]
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
