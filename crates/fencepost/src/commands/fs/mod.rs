//! `fencepost fs`: file systems.

mod amount;
mod check;
mod elsewhere;
mod execute;
pub mod guest;
mod kernel;
mod release;
pub mod replay;
mod screening;
mod session;
mod shorten;
mod staged;
mod workloads;

use clap::Subcommand;

use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  fencepost fs check --mkfs 'myfs --mkfs {pool}' --fuse 'myfs {pool} -f -s {mount}'
  fencepost fs workloads --ace seq-1
  fencepost fs run /tmp/empty < operations";

/// Check file systems: workloads of system calls, and what must hold after a crash.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Fs {
    Check(Box<check::FsCheck>),
    Workloads(workloads::Workloads),
    Run(execute::Execute),
    Kernel(kernel::Kernel),
}

impl Fs {
    pub fn run(&self) -> Exit {
        match self {
            Fs::Check(check) => check.run(),
            Fs::Workloads(workloads) => workloads.run(),
            Fs::Run(execute) => execute.run(),
            Fs::Kernel(kernel) => kernel.run(),
        }
    }
}
