//! Runs the workloads under every runner, interleaved, and prints the table.

use std::fs;
use std::process::ExitCode;

use clap::Args;

use super::measure;
use super::runner::Runner;
use super::table::{self, Cell, Row};
use super::workload::{self, BenchWorkload};
use crate::build;
use crate::scratch::Scratch;

#[derive(Args, Debug)]
pub struct RecordBench {
    /// Runs per workload and runner; the table shows their median.
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// Size of the workloads relative to the usual one.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Only native and Fencepost.
    #[arg(long)]
    no_peers: bool,
    /// Only workloads whose name contains one of these.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

impl RecordBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let scratch = Scratch::new("bench")?;
        let executable = build::fencepost()?;
        let trace = scratch.path().join("trace");
        let mut runners = vec![Runner::Native, Runner::Fencepost { executable, trace: trace.clone() }];
        if !self.no_peers {
            runners.extend([Runner::Valgrind, Runner::Qemu]);
        }
        runners.retain(Runner::is_there);
        let workloads = workload::prepare(scratch.path(), &build::targets_folder()?, self.scale)?;
        let mut rows = Vec::new();
        let mut trace_sizes = Vec::new();
        for workload in workloads.iter().filter(|workload| workload.is_there() && self.wants(workload)) {
            eprintln!("{} …", workload.name);
            rows.push(self.row(workload, &runners, &scratch)?);
            if workload.is_pmdk
                && let Ok(meta) = fs::metadata(&trace)
            {
                trace_sizes.push(format!("{} {:.1} MB", workload.name, meta.len() as f64 / 1e6));
            }
        }
        let names: Vec<_> = runners.iter().map(Runner::name).collect();
        table::print(&names, &rows);
        println!(
            "\nCPU time: user and system time of the whole process tree, the recorder's own included (in parentheses: without"
        );
        println!(
            "it, the target alone). Median of {} interleaved runs. Memory: largest resident set of a process, native and how",
            self.runs
        );
        println!("much more under Fencepost.");
        if !trace_sizes.is_empty() {
            println!("Traces on disk (goal for btree at 150,000 operations: ≤ 25 MB): {}", trace_sizes.join(", "));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn wants(&self, workload: &BenchWorkload) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| workload.name.contains(name.as_str()))
    }

    /// All runs of one workload. A runner that fails once is not tried again.
    fn row(&self, workload: &BenchWorkload, runners: &[Runner], scratch: &Scratch) -> anyhow::Result<Row> {
        let mut cells = vec![Cell::default(); runners.len()];
        for _ in 0..self.runs {
            for (runner, cell) in runners.iter().zip(&mut cells).filter(|(_, cell)| cell.failure.is_none()) {
                let mut command = runner.command(&workload.program);
                workload.complete(&mut command, scratch.path())?;
                let cost = measure::run(&mut command)?;
                if cost.exit_code != 0 {
                    cell.failure = Some(format!("exit code {}", cost.exit_code));
                    continue;
                }
                cell.cpu.push(cost.cpu);
                if matches!(runner, Runner::Fencepost { .. }) {
                    cell.target.push(cost.cpu - cost.own);
                }
                cell.peak_kib = cell.peak_kib.max(cost.peak_kib);
            }
        }
        Ok(Row { name: workload.name.clone(), goal: workload.goal, is_start: workload.is_start, cells })
    }
}
