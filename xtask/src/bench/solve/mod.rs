//! `cargo xtask bench solve`: PM-aware search beside breadth-first and random, what following the input costs, and which misuse of the
//! published classes solving shows in Debian's PMDK examples.

mod classes;
mod cost;
mod explored;
mod search;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use crate::build;
use crate::scratch::Scratch;

#[derive(Args, Debug)]
pub struct SolveBench {
    /// What to measure. Repeatable. [default: all]
    #[arg(long = "part", value_enum)]
    parts: Vec<Part>,
    /// Seconds of each exploration.
    #[arg(long, default_value_t = 60)]
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
    /// PM instructions executed after equal time, by strategy (Agamotto, figure 3).
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
