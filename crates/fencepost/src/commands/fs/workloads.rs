//! `fencepost fs workloads`: prints bounded exhaustive or random workloads.

use std::io::{self, BufWriter, Write};

use clap::{Args, ValueEnum};
use fs::ace::Set;
use fs::generate::Generator;
use fs::workload::FsWorkload;

use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost fs workloads --ace seq-1                 all 56 workloads of one operation
  fencepost fs workloads --ace seq-3 --count         how many there are
  fencepost fs workloads --fuzz 100 --seed 7         100 random workloads

Each workload first makes what its last operation needs; `crash` marks the operation in which power fails.";

/// Print workloads: one system call per line.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Workloads {
    /// A bounded exhaustive set.
    #[arg(long, value_name = "SET", required_unless_present = "fuzz")]
    ace: Option<AceSet>,
    /// N random workloads.
    #[arg(long, value_name = "N", conflicts_with = "ace")]
    fuzz: Option<u64>,
    /// Seed for random workloads.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of operations in a random workload.
    #[arg(long, value_name = "N", default_value_t = 12)]
    length: usize,
    /// Print only their number.
    #[arg(long)]
    count: bool,
}

/// The bounded exhaustive sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AceSet {
    /// Every one of 56 operations.
    #[value(name = "seq-1")]
    Seq1,
    /// Every two of them.
    #[value(name = "seq-2")]
    Seq2,
    /// Every three of write, link, unlink and rename.
    #[value(name = "seq-3")]
    Seq3,
    /// Operations with a persistence point each, for file systems that need fsync.
    Fsync,
}

impl From<AceSet> for Set {
    fn from(set: AceSet) -> Set {
        match set {
            AceSet::Seq1 => Set::Seq1,
            AceSet::Seq2 => Set::Seq2,
            AceSet::Seq3 => Set::Seq3,
            AceSet::Fsync => Set::Fsync,
        }
    }
}

impl Workloads {
    pub fn run(&self) -> Exit {
        render::ended(self.print())
    }

    fn print(&self) -> io::Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        if self.count {
            writeln!(out, "{}", self.workloads().count())?;
        } else {
            for workload in self.workloads() {
                write!(out, "{workload}")?;
            }
        }
        out.flush()
    }

    fn workloads(&self) -> Box<dyn Iterator<Item = FsWorkload>> {
        match (self.ace, self.fuzz) {
            (Some(set), _) => Set::from(set).workloads(),
            (None, count) => {
                let generator = Generator { seed: self.seed, operations: self.length, fsync: false };
                Box::new((0..count.unwrap_or(0)).map(move |number| generator.workload(number)))
            }
        }
    }
}
