//! `cargo xtask bench solve`: PM-aware search beside breadth-first and random, what following the input costs, and which misuse of the
//! published classes solving shows in Debian's PMDK examples.

mod classes;
mod cost;
mod explored;
pub mod panels;
mod search;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};

use crate::build;
use crate::scratch::Scratch;

/// With the programs that are explored.
const PACKAGES: [&str; 5] = ["libpmemobj-dev", "libpmem2-dev", "libpmemlog-dev", "libpmemblk-dev", "sqlite3"];

#[derive(Args, Debug)]
pub struct SolveBench {
    /// What to measure. Repeatable. [default: all]
    #[arg(long = "part", value_enum)]
    parts: Vec<Part>,
    /// Seconds of CPU time of each exploration.
    #[arg(long, default_value_t = 20)]
    time: u64,
    /// Only programs whose name contains this. Repeatable.
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// Write the plot of the search there.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// PM instructions executed after equal CPU time, by strategy (Agamotto, figure 3).
    Search,
    /// Instructions per second, slowdown, memory, queries.
    Cost,
    /// Misuse that is reported (Agamotto §6.1), after how long, with which input.
    Classes,
}

impl SolveBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let need = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/need");
        let installed = Command::new(&need).args(PACKAGES).stdout(Stdio::null()).status();
        let installed = installed.with_context(|| need.display().to_string())?;
        ensure!(installed.success(), "packages are missing");
        let scratch = Scratch::new("bench-solve")?;
        let wants = |part: Part| self.parts.is_empty() || self.parts.contains(&part);
        let context = Context { fencepost, scratch, time: self.time, only: self.only.clone() };
        if wants(Part::Search) {
            search::run(&context, self.plot.as_deref())?;
        }
        if wants(Part::Cost) {
            cost::run(&context)?;
        }
        if wants(Part::Classes) {
            classes::run(&context)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What all parts need.
struct Context {
    fencepost: PathBuf,
    scratch: Scratch,
    time: u64,
    only: Vec<String>,
}

impl Context {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| name.contains(wanted.as_str()))
    }
}
