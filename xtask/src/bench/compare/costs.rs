//! Time, memory and findings on Debian's libpmemobj maps, for workloads of growing length.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use targets::pmdk;

use super::super::measure::median;
use super::peers::Peers;
use super::plot::{Plot, Series};
use super::run::{self, Ran, words};
use super::way::Way;
use crate::scratch::Scratch;

/// A run that takes less is repeated, and the median shown.
const SHORT: Duration = Duration::from_secs(2);

/// Which workloads are run, and how often.
#[derive(Clone, Debug)]
pub struct CostPlan {
    /// Maps and numbers of operations.
    workloads: &'static [(&'static str, u32)],
    repetitions: usize,
    limit: Duration,
}

/// The map of the plot.
const PLOTTED: &str = "btree";

/// Its line 169 copies 16 bytes across two cache lines.
const WITH_A_BUG: &str = "hashmap_atomic";

impl CostPlan {
    pub fn whole(limit: Duration) -> CostPlan {
        let workloads =
            &[(PLOTTED, 1_500), (PLOTTED, 15_000), (PLOTTED, 150_000), (WITH_A_BUG, 1_500), (WITH_A_BUG, 15_000)];
        CostPlan { workloads, repetitions: 3, limit }
    }

    pub fn quick(limit: Duration) -> CostPlan {
        CostPlan { workloads: &[(PLOTTED, 1_500), (PLOTTED, 15_000)], repetitions: 1, limit }
    }

    /// A search to the end of its budget takes a minute: only where there is a bug to find, and never in a hurry.
    fn wants(&self, way: Way, map: &str, operations: u32) -> bool {
        way != Way::CheckBudget || (self.repetitions > 1 && map == WITH_A_BUG && operations <= 1_500)
    }
}

/// What one way cost on one workload.
#[derive(Clone, Debug)]
pub struct Cost {
    map: &'static str,
    operations: u32,
    way: Way,
    cpu: Duration,
    wall: Duration,
    peak_kib: i64,
    is_cut_short: bool,
    said: String,
}

/// What the runs need.
struct Bench<'a> {
    plan: &'a CostPlan,
    fencepost: &'a Path,
    folder: PathBuf,
    input: PathBuf,
}

/// Prints a table for each workload.
pub fn run(
    plan: &CostPlan,
    peers: &Peers,
    fencepost: &Path,
    mapcli: &Path,
    scratch: &Scratch,
) -> anyhow::Result<Vec<Cost>> {
    let mut all = Vec::new();
    println!("## Time, memory, findings");
    for &(map, operations) in plan.workloads {
        println!("\n### PMDK {map}, {operations} operations\n");
        println!("| | CPU | to native | wall | memory | says |\n| --- | ---: | ---: | ---: | ---: | --- |");
        let folder = scratch.fresh("costs")?;
        let input = folder.join("operations");
        fs::write(&input, pmdk::workload(operations))?;
        let bench = Bench { plan, fencepost, folder, input };
        let program = words(&[&mapcli.display().to_string(), map, "pool", "1"]);
        let mut native = None;
        for way in Way::ALL.into_iter().filter(|&way| peers.have(way) && plan.wants(way, map, operations)) {
            let cost = bench.cost(map, operations, way, &program)?;
            println!("{}", row(&cost, *native.get_or_insert(cost.cpu)));
            all.push(cost);
            if way == Way::Native && peers.pmempool {
                bench.check_what_is_left()?;
            }
        }
    }
    println!();
    Ok(all)
}

impl Bench<'_> {
    fn cost(&self, map: &'static str, operations: u32, way: Way, program: &[String]) -> anyhow::Result<Cost> {
        let command = way.command(self.fencepost, program);
        let mut ran: Vec<Ran> = Vec::new();
        while ran.len() < self.plan.repetitions && ran.first().is_none_or(|first| first.wall < SHORT) {
            let _ = fs::remove_file(self.folder.join("pool"));
            ran.push(run::run(&command, &self.folder, Some(&self.input), self.plan.limit)?);
        }
        let first = ran.first().context("no run was asked for")?;
        // 1: Fencepost has findings.
        let is_fine = first.exit_code <= 1 || first.is_cut_short();
        ensure!(is_fine, "{command:?}: exit code {}\n{}", first.exit_code, first.stderr);
        let (is_cut_short, said) = (first.is_cut_short(), way.said(first));
        let cpu = median(ran.iter().map(|ran| ran.cpu).collect());
        let wall = median(ran.iter().map(|ran| ran.wall).collect());
        let peak_kib = ran.iter().map(|ran| ran.peak_kib).max().unwrap_or_default();
        Ok(Cost { map, operations, way, cpu, wall, peak_kib, is_cut_short, said })
    }

    /// The only one of PMDK's tools that does anything without pmemcheck.
    fn check_what_is_left(&self) -> anyhow::Result<()> {
        let ran = run::run(&words(&PMEMPOOL), &self.folder, None, self.plan.limit)?;
        println!(
            "| `pmempool check` (on the pool that is left) | {:.2} s | | {:.2} s | {} MiB | {} |",
            ran.cpu.as_secs_f64(),
            ran.wall.as_secs_f64(),
            ran.peak_kib / 1024,
            pmempool(&ran)
        );
        Ok(())
    }
}

/// Without `-v` it says nothing of a good pool.
pub const PMEMPOOL: [&str; 4] = ["pmempool", "check", "-v", "pool"];

/// What `pmempool check` says of a pool, in a few words.
pub fn pmempool(ran: &Ran) -> &'static str {
    match ran.exit_code {
        0 if ran.stdout.contains(": consistent") => "nothing",
        _ if ran.stdout.contains("not consistent") => "not consistent",
        _ => "cannot read it",
    }
}

fn row(cost: &Cost, native: Duration) -> String {
    let more = if cost.is_cut_short { "> " } else { "" };
    let ratio = cost.cpu.as_secs_f64() / native.as_secs_f64().max(1e-3);
    format!(
        "| {} | {more}{:.2} s | {more}{ratio:.1}× | {more}{:.2} s | {} MiB | {} |",
        cost.way.name(),
        cost.cpu.as_secs_f64(),
        cost.wall.as_secs_f64(),
        cost.peak_kib / 1024,
        cost.said
    )
}

/// Cost against the length of the workload, for the first map.
pub fn plot(plan: &CostPlan, costs: &[Cost]) -> Plot {
    let mut series = Vec::new();
    for way in Way::ALL {
        let Some((name, colour)) = way.line() else { continue };
        let of_way = costs.iter().filter(|cost| cost.map == PLOTTED && cost.way == way && !cost.is_cut_short);
        let points: Vec<_> = of_way.map(|cost| (f64::from(cost.operations), cost.cpu.as_secs_f64())).collect();
        if !points.is_empty() {
            series.push(Series { name: name.to_owned(), colour, points });
        }
    }
    Plot {
        title: format!("CPU time against the length of the workload (PMDK {PLOTTED})"),
        x_label: "operations".to_owned(),
        y_label: "seconds of CPU time".to_owned(),
        x_ticks: plan.workloads.iter().filter(|(map, _)| *map == PLOTTED).map(|&(_, n)| f64::from(n)).collect(),
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_cut_short_is_a_lower_bound() {
        let cost = Cost {
            map: "btree",
            operations: 1500,
            way: Way::Memcheck,
            cpu: Duration::from_secs(120),
            wall: Duration::from_secs(120),
            peak_kib: 2048,
            is_cut_short: true,
            said: String::new(),
        };
        let row = row(&cost, Duration::from_secs(2));
        assert_eq!(row, "| `valgrind` (memcheck) | > 120.00 s | > 60.0× | > 120.00 s | 2 MiB |  |");
    }
}
