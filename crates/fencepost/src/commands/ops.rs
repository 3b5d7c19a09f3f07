//! `fencepost ops`: workloads of operations.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use operation::generate::generate;

use super::options::operation::grammar;
use crate::exit::Exit;
use crate::render;

const GRAMMAR: &str = "\
A grammar is a TOML file:
  [operations]
  insert = \"i {newkey} {value}\"     {newkey}: a key that was not used before
  delete = \"d {key}\"                {key}: one that was; {anykey}: either; {value}: a number
  [weights]
  insert = 3                        how often, relative to the others; default 1
  [readback]
  queries = [\"g {key}\", \"n\"]        asked at the end of every run; with {key}: for every used key
  [keys]
  range = 1000                      keys are below this

Examples:
  fencepost ops generate --grammar kv.toml --count 2000 --seed 7 --output ops --readback queries
  fencepost check --ops ops --readback queries -- ./kv pool
  fencepost check --grammar kv.toml --count 2000 --seed 7 -- ./kv pool     the same in one";

/// Workloads of operations.
#[derive(Debug, Subcommand)]
#[command(about = "Generate workloads of operations", after_help = GRAMMAR)]
pub enum Ops {
    Generate(Generate),
}

/// Generate operations from a grammar: the same for the same seed.
#[derive(Args, Debug)]
#[command(after_help = GRAMMAR)]
pub struct Generate {
    /// The grammar.
    #[arg(long, value_name = "FILE")]
    grammar: PathBuf,
    /// Number of operations.
    #[arg(long, value_name = "N", default_value_t = 200)]
    count: usize,
    /// Seed for random choices.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// File to write the operations to. [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// File to write the readback queries to.
    #[arg(long, alias = "tail", value_name = "FILE")]
    readback: Option<PathBuf>,
}

impl Ops {
    pub fn run(&self) -> Exit {
        let Ops::Generate(generate) = self;
        match generate.run() {
            Ok(exit) => exit,
            Err(text) => {
                render::error(text);
                Exit::Usage
            }
        }
    }
}

impl Generate {
    fn run(&self) -> Result<Exit, String> {
        let made = generate(&grammar(&self.grammar)?, self.count, self.seed);
        if let Some(path) = &self.readback {
            write(path, &made.readback)?;
        }
        match &self.output {
            Some(path) => write(path, &made.operations)?,
            None => return Ok(render::ended(render::result(made.operations.trim_end_matches('\n')))),
        }
        Ok(Exit::Clean)
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
