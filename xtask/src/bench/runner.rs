//! The ways to run a workload that are compared.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    Native,
    Fencepost { executable: PathBuf, trace: PathBuf },
    Valgrind,
    Qemu,
}

impl Runner {
    pub fn name(&self) -> &'static str {
        match self {
            Runner::Native => "native",
            Runner::Fencepost { .. } => "fencepost",
            Runner::Valgrind => "valgrind --tool=none",
            Runner::Qemu => "qemu-x86_64",
        }
    }

    /// Whether it is installed.
    pub fn is_there(&self) -> bool {
        match self {
            Runner::Native | Runner::Fencepost { .. } => true,
            Runner::Valgrind => in_path("valgrind"),
            Runner::Qemu => in_path("qemu-x86_64"),
        }
    }

    /// A command that runs `program` this way; arguments of the program go behind it.
    pub fn command(&self, program: &Path) -> Command {
        match self {
            Runner::Native => Command::new(program),
            Runner::Fencepost { executable, trace } => {
                let mut command = Command::new(executable);
                command.args(["record", "--quiet", "--exit-with-target", "-o"]).arg(trace).arg("--").arg(program);
                command
            }
            Runner::Valgrind => {
                let mut command = Command::new("valgrind");
                command.args(["-q", "--tool=none", "--trace-children=yes"]).arg(program);
                command
            }
            Runner::Qemu => {
                let mut command = Command::new("qemu-x86_64");
                command.args(["-cpu", "max"]).arg(program);
                command
            }
        }
    }
}

fn in_path(program: &str) -> bool {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).exists())
}
