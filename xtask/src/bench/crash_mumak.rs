//! The workload of Mumak §6.1: Debian's libpmemobj maps, 150,000 operations, checked from start to report.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;
use targets::pmdk;

use super::crash_run::{Done, Fencepost};
use super::measure::{self, Cost};
use crate::build;
use crate::scratch::Scratch;

/// What the project asks for, for each map.
const GOAL: Duration = Duration::from_secs(5 * 60);

/// Mumak's maps.
pub const MAPS: [&str; 3] = ["btree", "rbtree", "hashmap_atomic"];

/// The states that Mumak has, and the least that a crash can leave, at each point whose call path is new.
const OPTIONS: [&str; 5] = ["--no-lint", "--occurrences", "1", "--strategy", "program-order,guaranteed-only"];

/// Prints the table; whether the goal is met.
pub fn run(executable: &Path, scratch: &Scratch, maps: &[String], operations: u32) -> anyhow::Result<bool> {
    let mapcli = pmdk::build_mapcli(&build::targets_folder()?)?;
    let input = scratch.path().join("operations");
    fs::write(&input, workload(operations))?;
    println!("## Mumak's workload, {operations} operations: `fencepost check {} --budget none`", OPTIONS.join(" "));
    println!(
        "{:<16}{:>9}{:>9}{:>9}{:>10}{:>9}{:>10}{:>10}{:>9}{:>11}{:>11}{:>8}{:>12}{:>10}",
        "map",
        "native",
        "CPU",
        "memory",
        "check",
        "CPU",
        "memory",
        "events",
        "points",
        "of paths",
        "states",
        "runs",
        "saved",
        "findings"
    );
    let mut slowest = Duration::ZERO;
    let mut found = Vec::new();
    for map in maps {
        let folder = scratch.fresh(map)?;
        let command = |pool: &str| [mapcli.display().to_string(), map.clone(), pool.to_owned(), "1".to_owned()];
        let native = native(&command("native"), &input, &folder)?;
        fs::remove_file(folder.join("native"))?;
        let done = Fencepost { executable, folder: &folder }.check(&command("pool"), &input, &OPTIONS)?;
        println!("{}", row(map, native, &done));
        done.warn_of_native_runs(map);
        found.extend(done.summary.findings.iter().map(|title| format!("{map}: {title}")));
        slowest = slowest.max(done.wall);
        fs::remove_dir_all(&folder)?;
    }
    for finding in found {
        println!("found: {finding}");
    }
    println!("slowest: {:.1} s (goal: < {} s)\n", slowest.as_secs_f64(), GOAL.as_secs());
    Ok(slowest < GOAL)
}

fn row(map: &str, (native_wall, native): (Duration, Cost), done: &Done) -> String {
    let summary = &done.summary;
    format!(
        "{map:<16}{:>7.2} s{:>7.2} s{:>5} MiB{:>8.1} s{:>7.1} s{:>6} MiB{:>8.1} M{:>9}{:>11}{:>11}{:>8}{:>12}{:>10}",
        native_wall.as_secs_f64(),
        native.cpu.as_secs_f64(),
        native.peak_kib / 1024,
        done.wall.as_secs_f64(),
        done.cost.cpu.as_secs_f64(),
        done.cost.peak_kib / 1024,
        summary.events as f64 / 1e6,
        summary.crash_points,
        summary.failure_points,
        summary.states_decided,
        summary.recovery_runs,
        summary.runs_saved,
        summary.findings.len()
    )
}

fn native(command: &[String], input: &Path, folder: &Path) -> anyhow::Result<(Duration, Cost)> {
    let mut native = Command::new(&command[0]);
    native.args(&command[1..]).current_dir(folder).env("PMEM_IS_PMEM_FORCE", "1");
    native.stdin(File::open(input)?).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let cost = measure::run(&mut native)?;
    ensure!(cost.exit_code == 0, "{native:?}: exit code {}", cost.exit_code);
    Ok((start.elapsed(), cost))
}

/// Equal shares of insertions, look-ups and removals of scattered keys. The map grows in the first half and shrinks to
/// nothing in the second, so that nodes are split and merged. The same text every time.
fn workload(operations: u32) -> String {
    let mut text = String::new();
    let mut state = 1u64;
    let mut random = || {
        // Knuth's MMIX multiplier; the bits above the noisy ones.
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 24
    };
    let mut keys = Vec::new();
    for n in 0..operations {
        let shares = if n < operations / 2 { b"iicicr" } else { b"rcircr" };
        let at = if keys.is_empty() { 0 } else { random() as usize % keys.len() };
        let (kind, key) = match shares[n as usize % shares.len()] {
            b'i' => {
                keys.push(random() | 1);
                ('i', keys[keys.len() - 1])
            }
            b'r' if !keys.is_empty() => ('r', keys.swap_remove(at)),
            _ => ('c', keys.get(at).copied().unwrap_or(1)),
        };
        writeln!(text, "{kind} {key}").expect("a String takes any text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_equal_and_every_removed_key_is_there() {
        let text = workload(1500);
        let mut keys = std::collections::BTreeSet::new();
        let mut shares = [0; 3];
        for line in text.lines() {
            let (kind, key) = line.split_once(' ').expect("an operation and a key");
            match kind {
                "i" => {
                    shares[0] += 1;
                    assert!(keys.insert(key), "{key} is inserted twice");
                }
                "c" => shares[1] += 1,
                _ => {
                    shares[2] += 1;
                    assert!(keys.remove(key), "{key} is not there");
                }
            }
        }
        assert_eq!(shares, [500; 3]);
        assert_eq!(text, workload(1500));
    }
}
