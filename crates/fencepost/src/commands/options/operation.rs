//! Operations: the options that say which lines the program gets, and how its answers are judged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use check::settings::OPERATIONS_AFTER;
use clap::{Args, ValueEnum};
use operation::generate::{Generated, generate};
use operation::grammar::{Grammar, LineOrder};
use operation::workload::Workload;

/// More would take longer than they are worth where every crash state asks them.
const QUERIES: usize = 256;

#[derive(Args, Clone, Debug)]
pub struct OperationOptions {
    /// File of operations, one per line, to feed to the program's standard input. After a crash, its answers must show the
    /// interrupted operation either complete or absent.
    #[arg(long, value_name = "FILE")]
    pub ops: Option<PathBuf>,
    /// File of queries, one per line, to ask at the end of every run: they make lost data visible.
    #[arg(long, alias = "tail", value_name = "FILE", requires = "ops")]
    pub readback: Option<PathBuf>,
    /// Generate the operations and the readback from this grammar (see `fencepost ops generate --help`).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ops", "readback"])]
    pub grammar: Option<PathBuf>,
    /// Number of operations to generate.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub count: usize,
    /// Seed for generated operations.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Operations to run after the crash, before the readback.
    #[arg(long, alias = "horizon", value_name = "N", default_value_t = OPERATIONS_AFTER)]
    pub operations_after: usize,
    /// Readback queries to ask after a crash: those about operations near the crash, and a sample of the rest.
    #[arg(long, alias = "tail-queries", value_name = "N", default_value_t = QUERIES)]
    pub readback_queries: usize,
    /// Whether the order of lines in an answer to a query matters: `any`, listings with the same lines are equal; `fixed`, they are not.
    /// [default: as the grammar says, else a different order is a warning]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub readback_order: Option<ReadbackOrder>,
    /// TEXT separates the items of an answer to a query that lists them on one line. [default: as the grammar says, else spaces]
    #[arg(long, value_name = "TEXT")]
    pub readback_separator: Option<String>,
    /// Simulate no crash before the first operation. By default, crashes during setup get a tenth of the budget.
    #[arg(long)]
    pub after_setup: bool,
    /// Simulate no crash before operation N, counting from 0.
    #[arg(long, value_name = "N")]
    pub skip_operations: Option<usize>,
    /// TEXT separates operations on one line that run concurrently: they may take effect in any order.
    #[arg(long, value_name = "TEXT")]
    pub window_separator: Option<String>,
    /// In place of those that the grammar gives first.
    #[arg(skip)]
    chosen: OnceLock<Generated>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReadbackOrder {
    Any,
    Fixed,
}

impl From<ReadbackOrder> for LineOrder {
    fn from(order: ReadbackOrder) -> LineOrder {
        match order {
            ReadbackOrder::Any => LineOrder::Any,
            ReadbackOrder::Fixed => LineOrder::Fixed,
        }
    }
}

impl OperationOptions {
    /// Operations whose crashes are left out.
    pub fn skipped(&self) -> Option<usize> {
        self.skip_operations.or(self.after_setup.then_some(0))
    }

    /// The workload, if there is one.
    pub fn workload(&self) -> Result<Option<Workload>, String> {
        let Some(mut workload) = self.given()? else { return Ok(None) };
        workload.limit_queries(self.readback_queries);
        workload.order = self.readback_order.map(LineOrder::from).or(workload.order);
        workload.separator = self.readback_separator.clone().or(workload.separator);
        let Some(separator) = &self.window_separator else { return Ok(Some(workload)) };
        if separator.trim().is_empty() {
            return Err("--window-separator must have more in it than spaces".into());
        }
        workload.with_windows(separator).map(Some).map_err(|error| error.to_string())
    }

    /// Takes these from now on.
    pub fn choose(&self, chosen: Generated) {
        // Only the first choice counts.
        let _ = self.chosen.set(chosen);
    }

    fn given(&self) -> Result<Option<Workload>, String> {
        if let Some(path) = &self.grammar {
            let grammar = grammar(path)?;
            let chosen = self.chosen.get().cloned();
            let made = chosen.unwrap_or_else(|| generate(&grammar, self.count, self.seed));
            let mut workload = Workload::new(made.operations.as_bytes(), made.readback.as_bytes())
                .map_err(|error| format!("{}: {error}", path.display()))?;
            workload.name_kinds(made.kinds);
            (workload.order, workload.separator) = (grammar.order, grammar.separator);
            return Ok(Some(workload));
        }
        let Some(ops) = &self.ops else { return Ok(None) };
        let readback =
            self.readback.as_deref().map(|readback| read("readback", readback)).transpose()?.unwrap_or_default();
        Workload::new(&read("operations", ops)?, &readback)
            .map(Some)
            .map_err(|error| format!("{}: {error}", ops.display()))
    }
}

/// Reads the file; `what` the user will know it as.
pub fn read(what: &str, path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read the {what} {}: {error}", path.display()))
}

/// Reads a grammar.
pub fn grammar(path: &Path) -> Result<Grammar, String> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("cannot read the grammar {}: {error}", path.display()))?;
    Grammar::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}
