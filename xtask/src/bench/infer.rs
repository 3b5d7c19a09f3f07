//! `cargo xtask bench infer`: how few states break an inferred condition, and whether they find what all states find.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use targets::crash::{CrashTarget, TWIN, with_operations};
use targets::pmdk;

use super::infer_run::{Case, InferSummary};
use super::infer_table::{Row, Side, line, print};
use super::infer_windows as windows;
use crate::build;
use crate::scratch::Scratch;

/// What is compared: the two states that every point has, then these and more.
const STRATEGIES: [&str; 3] = [
    "program-order,guaranteed-only",
    "program-order,guaranteed-only,inferred",
    "program-order,guaranteed-only,visible",
];

/// What the others may take: with them all is to be decided, unless recoveries hang over and over.
const PATIENT: Duration = Duration::from_secs(300);

/// Recoveries of `inferred` are few if they are at most a third of those of `visible`, unless these are few themselves.
const FEW: u64 = 3;
const FEW_ANYWAY: u64 = 100;

/// Operations of PMDK's `mapcli`.
const MAP_GRAMMAR: &str = include_str!("infer_map.toml");

#[derive(Args, Debug)]
pub struct InferBench {
    /// Operations for each program.
    #[arg(long, default_value_t = 100)]
    count: u32,
    /// Operations for PMDK's maps, of which recovery reads little: with few of them `visible` has nothing to do.
    #[arg(long, default_value_t = 200)]
    map_count: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long each search with `visible` may take beyond the two quick strategies; what it did not decide by then is not counted, and marked.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    budget: Duration,
    /// The same for PMDK's maps: their recoveries take ten times as long.
    #[arg(long, value_name = "SECONDS", default_value = "240", value_parser = seconds)]
    map_budget: Duration,
    /// Only programs and maps whose name contains this. Repeatable.
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

impl InferBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let scratch = Scratch::new("bench-infer")?;
        let mut rows = Vec::new();
        for target in with_operations()?.iter().filter(|target| self.wants(&target.name)) {
            take(&target.name, self.target(&fencepost, target, &scratch), &mut rows);
        }
        if self.wants(windows::NAME) {
            take(windows::NAME, self.windows(&fencepost, &scratch), &mut rows);
        }
        let grammar = scratch.path().join("map.toml");
        fs::write(&grammar, MAP_GRAMMAR)?;
        for map in pmdk::MAPS.into_iter().filter(|map| self.wants(map)) {
            take(map, self.map(&fencepost, map, &grammar, &scratch), &mut rows);
        }
        println!(
            "## `fencepost check --grammar … --count {} (PMDK's maps: {}) --seed {}`, {} s for visible (maps: {} s)",
            self.count,
            self.map_count,
            self.seed,
            self.budget.as_secs(),
            self.map_budget.as_secs()
        );
        print(&rows);
        println!(
            "two: {}; inferred and visible: what they name, and the recoveries they run, beyond these.",
            STRATEGIES[0]
        );
        println!(
            "A recovery is run for a state that no earlier one can be told from by what it read: recoveries are states"
        );
        println!("that recovery can tell apart, and part is that of inferred in those of visible.");
        println!(
            "States, recoveries and time are those of all variants together, the correct twin included; time is that of"
        );
        println!(
            "the two as well, and has recording, inference and search. A bug is found if its variant has a finding; !: the"
        );
        println!("twin has one. *: the budget ended before everything was decided.");
        let mut holds = true;
        for row in &rows {
            let missed = row.inferred().found < row.visible().found;
            let many = row.inferred().complete
                && row.visible().complete
                && row.recoveries(1) * FEW > row.recoveries(2).max(FEW_ANYWAY);
            for (is_so, what) in [
                (missed, "inferred misses a bug that visible finds"),
                (many, "inferred is no small part of visible"),
                (row.is_twin_guilty(), "something was found in the correct twin"),
            ] {
                if is_so {
                    println!("{}: {what}", row.name);
                    holds = false;
                }
            }
        }
        Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }

    fn target(&self, fencepost: &Path, target: &CrashTarget, scratch: &Scratch) -> anyhow::Result<Row> {
        let grammar = target.grammar.as_deref().context("a program with operations has a grammar")?;
        let mut row = Row::new(&target.name);
        for variant in std::iter::once(TWIN).chain(target.variants()) {
            let program = target.build(variant, &build::targets_folder()?)?;
            let folder = scratch.fresh("case")?;
            let command = target.run_command(&program, &folder.join("pool"));
            let is_server = target.run.iter().any(|word| word == "{socket}");
            let mut options = self.operations(grammar, self.count);
            if is_server {
                options.extend(["--op-socket", "{socket}"].map(str::to_owned));
            }
            let case = Case { fencepost, folder: &folder, options: &options, command: &command, env: &target.env };
            compare(&case, self.budget, variant == TWIN, &mut row).with_context(|| format!("variant {variant}"))?;
        }
        Ok(row)
    }

    fn map(&self, fencepost: &Path, map: &str, grammar: &Path, scratch: &Scratch) -> anyhow::Result<Row> {
        let mapcli = pmdk::build_mapcli(&build::targets_folder()?)?;
        let folder = scratch.fresh("case")?;
        let command = [mapcli.display().to_string(), map.to_owned(), folder.join("pool").display().to_string()];
        let env = [("PMEM_IS_PMEM_FORCE".to_owned(), "1".to_owned())];
        let options = self.operations(grammar, self.map_count);
        let case = Case { fencepost, folder: &folder, options: &options, command: &command, env: &env };
        let mut row = Row::new(map);
        // Nobody knows beforehand what Debian's maps do wrong: what is found counts as bugs.
        compare(&case, self.map_budget, false, &mut row)?;
        Ok(row)
    }

    fn windows(&self, fencepost: &Path, scratch: &Scratch) -> anyhow::Result<Row> {
        let mut row = Row::new(windows::NAME);
        for variant in [0, 1] {
            let folder = scratch.fresh("case")?;
            let (options, command) = windows::prepare(&folder, variant)?;
            let case = Case { fencepost, folder: &folder, options: &options, command: &command, env: &[] };
            compare(&case, self.budget, variant == 0, &mut row)?;
        }
        Ok(row)
    }

    fn operations(&self, grammar: &Path, count: u32) -> Vec<String> {
        let (count, seed) = (count.to_string(), self.seed.to_string());
        ["--no-select", "--grammar", &grammar.display().to_string(), "--count", &count, "--seed", &seed]
            .map(str::to_owned)
            .to_vec()
    }
}

/// `visible` has this budget beyond the two quick strategies.
fn compare(case: &Case<'_>, budget: Duration, is_twin: bool, row: &mut Row) -> anyhow::Result<()> {
    row.bugs += u32::from(!is_twin);
    let mut possible = String::new();
    // By the two states of every point, which the others have as well.
    let mut took = None;
    for (side, strategy) in row.sides.iter_mut().zip(STRATEGIES) {
        let allowed = match took {
            Some(two) if strategy.contains("visible") => two + budget,
            _ => PATIENT,
        };
        let outcome = case.run(strategy, allowed)?;
        took.get_or_insert(outcome.wall);
        eprintln!(
            "{} {} {strategy}: {} states, {} recoveries, {} findings, {:.1} s{}",
            row.name,
            row.bugs,
            outcome.decided,
            outcome.runs,
            outcome.findings,
            outcome.wall.as_secs_f64(),
            if outcome.complete { "" } else { ", not complete" }
        );
        add(side, &outcome, is_twin);
        possible = outcome.possible;
    }
    row.possible.add(&possible);
    Ok(())
}

fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.trim_end_matches('s').parse().map(Duration::from_secs)
}

/// What cannot be checked is told, and the others go on.
fn take(name: &str, row: anyhow::Result<Row>, rows: &mut Vec<Row>) {
    match row {
        Ok(row) => {
            eprintln!("{}", line(&row));
            rows.push(row);
        }
        Err(error) => eprintln!("{name}: {error:#}"),
    }
}

fn add(side: &mut Side, outcome: &InferSummary, is_twin: bool) {
    side.states += outcome.decided;
    side.recoveries += outcome.runs;
    side.time += outcome.wall;
    side.complete &= outcome.complete;
    if is_twin {
        side.twin_findings += outcome.findings;
    } else {
        side.found += u32::from(outcome.findings > 0);
    }
}
