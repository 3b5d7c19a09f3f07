//! `cargo xtask blind`: is a default check of a program with several bugs at once a good check?
//!
//! The bugs of each program of `targets/ops` and `targets/crash` are built in together (as far as they go together), and so are those of
//! generated programs; each program is checked once, with default options and operations from its grammar. What counts: of the bugs that the
//! workload executes, how many were reported, and each by one finding only.

mod programs;
mod run;
mod share;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use crate::build;
use crate::scratch::Scratch;
use programs::cases;
use table::Row;

/// Of the executed bugs, so many percent must be reported.
const GOAL: usize = 95;

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BlindKind {
    /// All bugs of a program together: each is to be reported once.
    Together,
    /// The same, with a bug in the set-up that spoils almost every crash state.
    Setup,
    /// The last bug of a set beside a baseline of the others: it is to be the only new finding.
    OneMore,
    /// The correct twins, with a query that lists everything as it happens to lie: there is to be no error.
    Twins,
}

/// Check programs with several bugs at once, with default options, and count what is reported.
#[derive(Args, Debug)]
pub struct Blind {
    /// Only programs whose names contain one of these.
    only: Vec<String>,
    /// What is checked.
    #[arg(long, value_enum, default_value_t = BlindKind::Together)]
    kind: BlindKind,
    /// Operations of each workload.
    #[arg(long, default_value_t = 300)]
    count: u32,
    /// Seed of the workloads.
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// The budget of each check, in seconds.
    #[arg(long, default_value_t = 60)]
    budget: u32,
    /// The machine has other work, too: give each check as much more time as makes up for it, by what busy threads get just before.
    #[arg(long)]
    shared: bool,
    /// More options for each check.
    #[arg(long, allow_hyphen_values = true, value_delimiter = ' ')]
    options: Vec<String>,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
    /// Keep what each check printed there.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

impl Blind {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let scratch = Scratch::new("blind")?;
        let wanted = |name: &str| self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()));
        let mut sum = Row::default();
        println!("{}", Row::HEAD);
        let mut failed = 0;
        for case in cases(self.kind)?.into_iter().filter(|case| wanted(&case.name)) {
            let folder = scratch.fresh("case")?;
            let checked = case.check(&fencepost, &folder, self);
            if let Some(keep) = &self.keep {
                fs::create_dir_all(keep)?;
                for (from, end) in [("stdout", "jsonl"), ("stderr", "txt")] {
                    let to = keep.join(format!("{}.{end}", case.name.replace('/', "-")));
                    fs::copy(folder.join(from), to)?;
                }
            }
            match checked {
                Ok(row) => {
                    let row = Row { name: case.name, ..row };
                    println!("{row}");
                    sum.add(&row);
                }
                // The others say something all the same.
                Err(error) => {
                    println!("{:<23} could not be checked: {error:#}", case.name);
                    failed += 1;
                }
            }
        }
        sum.name = "sum".to_owned();
        println!("{sum}");
        println!(
            "executed: a store of one of its guilty lines is in the recording; more, strange: findings of severity error that are not needed"
        );
        let needless = sum.more + sum.strange + sum.foreign;
        let good = failed == 0 && sum.found * 100 >= sum.executed * GOAL && needless == 0;
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
