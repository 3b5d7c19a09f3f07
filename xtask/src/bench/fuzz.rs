//! `cargo xtask bench fuzz`: PM transitions that Fencepost and AFL++ reach in PMDK's maps, in the same time from the same seed.
//!
//! AFL++ is the baseline of PMFuzz §5: inputs only, a fresh pool for each run, the program built with its own instrumentation. What its
//! corpus covers is then counted with our map, on the program that was not built with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use targets::pmdk;

use crate::build;
use crate::scratch::Scratch;

/// Operations of PMDK's `mapcli`.
pub const MAP_GRAMMAR: &str = include_str!("infer_map.toml");
const SEED: &str = "i 1\n";

#[derive(Args, Debug)]
pub struct FuzzBench {
    /// How long each of the two fuzzes each map, on one processor.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    time: Duration,
    /// Only these maps.
    #[arg(long = "map", value_name = "NAME")]
    maps: Vec<String>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_secs)
}

/// What one fuzzer came to.
struct Side {
    executions: u64,
    cases: u64,
    pm_transitions: u64,
}

impl FuzzBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        if Command::new("afl-fuzz").arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            let command = ["install", "--yes", "--no-install-recommends", "afl++"];
            let status = Command::new("apt-get").args(command).status().context("cannot run apt-get")?;
            ensure!(status.success(), "Debian's package afl++ cannot be installed");
        }
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let folder = build::targets_folder()?;
        let mapcli = pmdk::build_mapcli(&folder)?;
        let for_afl = pmdk::build_mapcli_for_afl(&folder)?;
        let scratch = Scratch::new("bench-fuzz")?;
        fs::write(scratch.path().join("map.toml"), MAP_GRAMMAR)?;
        fs::create_dir_all(scratch.path().join("seeds"))?;
        fs::write(scratch.path().join("seeds/one"), SEED)?;
        println!("## {} s for each, one job, seed {}\n", self.time.as_secs(), self.seed);
        println!("| map | PM transitions | AFL++ | times | cases | AFL++ | executions | AFL++ |");
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        let mut ratios = Vec::new();
        for map in pmdk::MAPS.iter().filter(|map| self.maps.is_empty() || self.maps.iter().any(|name| name == *map)) {
            let ours = self.ours(&fencepost, &mapcli, map, &scratch)?;
            let theirs = self.theirs(&fencepost, &mapcli, &for_afl, map, &scratch)?;
            let ratio = ours.pm_transitions as f64 / theirs.pm_transitions.max(1) as f64;
            ratios.push(ratio);
            println!(
                "| {map} | {} | {} | {ratio:.1} | {} | {} | {} | {} |",
                ours.pm_transitions,
                theirs.pm_transitions,
                ours.cases,
                theirs.cases,
                ours.executions,
                theirs.executions
            );
        }
        if ratios.is_empty() {
            bail!("there is no such map; they are {}", pmdk::MAPS.join(", "));
        }
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        println!("\ngeometric mean: {mean:.1} times the PM transitions of AFL++");
        Ok(ExitCode::SUCCESS)
    }

    fn ours(&self, fencepost: &Path, mapcli: &Path, map: &str, scratch: &Scratch) -> anyhow::Result<Side> {
        let folder = scratch.fresh("ours")?;
        let mut command = self.fuzz(fencepost, &folder);
        command.args(["--time", &format!("{}s", self.time.as_secs())]);
        command.args(["--grammar", "../map.toml", "--seeds", "../seeds"]);
        side(command.arg("--").arg(mapcli).args([map, "pool", "1"]))
    }

    fn fuzz(&self, fencepost: &Path, folder: &Path) -> Command {
        let mut command = Command::new(fencepost);
        command.current_dir(folder).env("PMEM_IS_PMEM_FORCE", "1");
        command.args(["fuzz", "--progress", "never", "--check-share", "0", "--no-lint", "--jobs", "1"]);
        command.args(["--seed", &self.seed.to_string()]);
        command
    }

    fn theirs(
        &self,
        fencepost: &Path,
        mapcli: &Path,
        for_afl: &Path,
        map: &str,
        scratch: &Scratch,
    ) -> anyhow::Result<Side> {
        let folder = scratch.fresh("theirs")?;
        let mut command = Command::new("afl-fuzz");
        command.current_dir(&folder).env("PMEM_IS_PMEM_FORCE", "1").env("FRESH_POOL", folder.join("pool"));
        for name in ["AFL_NO_UI", "AFL_SKIP_CPUFREQ", "AFL_NO_AFFINITY", "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES"] {
            command.env(name, "1");
        }
        command.args(["-i", "../seeds", "-o", "afl", "-m", "none", "-t", "10000"]);
        command.args(["-s", &self.seed.to_string(), "-V", &self.time.as_secs().to_string()]);
        command.arg("--").arg(for_afl).args([map, "pool", "1"]);
        let output = command.stdin(Stdio::null()).output().context("afl-fuzz")?;
        let queue = folder.join("afl/default/queue");
        let cases =
            fs::read_dir(&queue).map_or(0, |entries| entries.flatten().filter(|entry| entry.path().is_file()).count());
        ensure!(cases > 0, "afl-fuzz kept nothing:\n{}", String::from_utf8_lossy(&output.stdout));
        let stats = fs::read_to_string(folder.join("afl/default/fuzzer_stats")).unwrap_or_default();
        let done = stats.lines().find(|line| line.starts_with("execs_done")).and_then(|line| line.split(':').nth(1));
        let mut count = self.fuzz(fencepost, &folder);
        count.args(["--executions", &cases.to_string(), "--seeds"]).arg(&queue);
        let counted = side(count.arg("--").arg(mapcli).args([map, "counted.pool", "1"]))?;
        let executions = done.and_then(|number| number.trim().parse().ok()).unwrap_or(0);
        Ok(Side { executions, cases: cases as u64, ..counted })
    }
}

/// Runs a campaign; the numbers of its last line.
fn side(command: &mut Command) -> anyhow::Result<Side> {
    let output = command.stdin(Stdio::null()).output().context("fencepost fuzz")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    let number = |word: &str| {
        let before = last.split(word).next().filter(|before| before.len() < last.len())?;
        before.trim().rsplit(' ').next()?.parse::<u64>().ok()
    };
    let told = || format!("no summary: {last}\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(Side {
        executions: number(" executions").with_context(told)?,
        cases: number(" cases").with_context(told)?,
        pm_transitions: number(" PM transitions").with_context(told)?,
    })
}
