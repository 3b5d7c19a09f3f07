//! `cargo xtask bench fuzz`: what Fencepost and AFL++ reach in PMDK's maps, in the same processor time from the same seed.
//!
//! AFL++ is the baseline of PMFuzz §5: inputs only, a fresh pool for each run, the program built with its own instrumentation. What its
//! corpus covers is then counted with our maps, on the program that was not built with it. Two things are counted. *PM transitions* are places
//! of the PM map that were ever reached; a program has only so many. *PM paths* are what the paper counts: cases that Algorithm 2 keeps for the PM map, since
//! they reach a new place of it, or one in a new class of its counter.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::Value;
use targets::pmdk;

use super::cpu_group::CpuGroup;
use super::measure::tree_time;
use super::solve::panels::{Curve, Panel, svg};
use crate::build;
use crate::scratch::Scratch;

/// Operations of PMDK's `mapcli`.
pub const MAP_GRAMMAR: &str = include_str!("fuzz_map.toml");
const SEED: &str = "i 1\n";
const SIDES: [(&str, &str); 2] = [("Fencepost", "#2f81f7"), ("AFL++", "#d29922")];
/// What a campaign leaves.
const COVERAGE: &str = "coverage.jsonl";
const CASES: &str = "cases.jsonl";
/// Between two looks at the time that was used.
const LOOK: Duration = Duration::from_millis(500);
/// A campaign on a busy machine, in times of its processor time.
const LONGEST: u32 = 20;

#[derive(Args, Debug)]
pub struct FuzzBench {
    /// How much processor time each of the two gets for each map, on one job.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    time: Duration,
    /// Only these maps.
    #[arg(long = "map", value_name = "NAME")]
    maps: Vec<String>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep what both found here, and take what earlier runs with the same time have kept instead of fuzzing again: `afl-MAP`, `ours-MAP`.
    /// Several commands can share the maps among them; the last one makes the table and the plot of all.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Draw coverage over time.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
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
    cases: usize,
    pm_paths: usize,
    /// Over processor seconds.
    pm_transitions: Vec<(f64, f64)>,
}

impl Side {
    fn transitions(&self) -> f64 {
        self.pm_transitions.last().map_or(0.0, |step| step.1)
    }
}

/// What both fuzzers need.
struct Setup {
    fencepost: PathBuf,
    mapcli: PathBuf,
    for_afl: PathBuf,
    scratch: Scratch,
}

impl FuzzBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        if Command::new("afl-fuzz").arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            let command = ["install", "--yes", "--no-install-recommends", "afl++"];
            let status = Command::new("apt-get").args(command).status().context("cannot run apt-get")?;
            ensure!(status.success(), "Debian's package afl++ cannot be installed");
        }
        let folder = build::targets_folder()?;
        let setup = Setup {
            fencepost: match &self.fencepost {
                Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
                None => build::fencepost()?,
            },
            mapcli: pmdk::build_mapcli(&folder)?,
            for_afl: pmdk::build_mapcli_for_afl(&folder)?,
            scratch: Scratch::new("bench-fuzz")?,
        };
        fs::write(setup.scratch.path().join("map.toml"), MAP_GRAMMAR)?;
        fs::create_dir_all(setup.scratch.path().join("seeds"))?;
        fs::write(setup.scratch.path().join("seeds/one"), SEED)?;
        println!("## {} s of processor time for each, one job, seed {}\n", self.time.as_secs(), self.seed);
        println!(
            "| map | PM paths | AFL++ | times | PM transitions | AFL++ | times | cases | AFL++ | executions | AFL++ |"
        );
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        let mut ratios = Vec::new();
        let mut panels = Vec::new();
        let is_wanted = |map: &&&str| self.maps.is_empty() || self.maps.iter().any(|name| name == **map);
        // First what does not depend on this build.
        for map in pmdk::MAPS.iter().filter(is_wanted) {
            self.afl(&setup, map)?;
        }
        for map in pmdk::MAPS.iter().filter(is_wanted) {
            let ours = self.ours(&setup, map)?;
            let theirs = self.theirs(&setup, map)?;
            let paths = ours.pm_paths as f64 / theirs.pm_paths.max(1) as f64;
            let transitions = ours.transitions() / theirs.transitions().max(1.0);
            println!(
                "| {map} | {} | {} | {paths:.1} | {} | {} | {transitions:.1} | {} | {} | {} | {} |",
                ours.pm_paths,
                theirs.pm_paths,
                ours.transitions(),
                theirs.transitions(),
                ours.cases,
                theirs.cases,
                ours.executions,
                theirs.executions
            );
            ratios.push((paths, transitions));
            let curve =
                |(side, (_, colour)): (Side, (&str, &'static str))| Curve { colour, steps: side.pm_transitions };
            panels.push(Panel {
                name: (*map).to_owned(),
                lines: [ours, theirs].into_iter().zip(SIDES).map(curve).collect(),
            });
        }
        if ratios.is_empty() {
            bail!("there is no such map; they are {}", pmdk::MAPS.join(", "));
        }
        let mean = |ratio: fn(&(f64, f64)) -> f64| {
            (ratios.iter().map(|both| ratio(both).ln()).sum::<f64>() / ratios.len() as f64).exp()
        };
        println!(
            "\ngeometric mean: {:.1} times the PM paths, {:.1} times the PM transitions of AFL++",
            mean(|both| both.0),
            mean(|both| both.1)
        );
        if let Some(path) = &self.plot {
            let title = "PM transitions in PMDK's maps";
            fs::write(path, svg(title, &SIDES, "seconds of processor time", self.time.as_secs_f64(), &panels))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn ours(&self, setup: &Setup, map: &str) -> anyhow::Result<Side> {
        let kept = self.kept(setup, "ours", map);
        if !kept.join("clock").exists() {
            self.fuzz_map(setup, map, &kept)?;
        }
        let clock = Clock::parse(&fs::read_to_string(kept.join("clock"))?);
        let samples = lines(&kept.join(COVERAGE))?;
        let pm_transitions = samples
            .iter()
            .map(|sample| (clock.cpu(number(sample, "second")), number(sample, "pm_transitions")))
            .collect();
        let executions = samples.last().map_or(0.0, |sample| number(sample, "executions")) as u64;
        let cases = lines(&kept.join(CASES))?;
        Ok(Side { executions, cases: cases.len(), pm_paths: pm_paths(&cases), pm_transitions })
    }

    /// Lets Fencepost fuzz, and keeps what the table needs.
    fn fuzz_map(&self, setup: &Setup, map: &str, kept: &Path) -> anyhow::Result<()> {
        let folder = setup.scratch.fresh("ours")?;
        let mut command = self.fuzz(setup, &folder);
        command.args(["--time", &format!("{}s", (self.time * LONGEST).as_secs())]);
        command
            .args(["--grammar", "../map.toml", "--seeds", "../seeds", "--"])
            .arg(&setup.mapcli)
            .args([map, "pool", "1"]);
        let clock = within(&mut command, self.time, &folder.join("output"))?;
        fs::create_dir_all(kept)?;
        for name in [COVERAGE, CASES] {
            fs::copy(folder.join("fuzz-out").join(name), kept.join(name)).with_context(|| {
                format!("fencepost fuzz: {}", fs::read_to_string(folder.join("output")).unwrap_or_default())
            })?;
        }
        Ok(fs::write(kept.join("clock"), clock.text())?)
    }

    fn fuzz(&self, setup: &Setup, folder: &Path) -> Command {
        let mut command = Command::new(&setup.fencepost);
        command.current_dir(folder).env("PMEM_IS_PMEM_FORCE", "1");
        command.args(["fuzz", "--progress", "never", "--check-share", "0", "--no-lint", "--jobs", "1"]);
        command.args(["--seed", &self.seed.to_string()]);
        command
    }

    fn theirs(&self, setup: &Setup, map: &str) -> anyhow::Result<Side> {
        let folder = setup.scratch.fresh("theirs")?;
        let kept = self.kept(setup, "afl", map);
        let clock = Clock::parse(&fs::read_to_string(kept.join("clock"))?);
        let mut queue: Vec<PathBuf> = fs::read_dir(kept.join("queue"))?.flatten().map(|entry| entry.path()).collect();
        queue.sort();
        let stats = fs::read_to_string(kept.join("fuzzer_stats")).unwrap_or_default();
        let done = stats.lines().find(|line| line.starts_with("execs_done")).and_then(|line| line.split(':').nth(1));
        let mut count = self.fuzz(setup, &folder);
        count.args(["--executions", &queue.len().to_string(), "--seeds"]).arg(fs::canonicalize(kept.join("queue"))?);
        count.arg("--").arg(&setup.mapcli).args([map, "counted.pool", "1"]);
        let status = count.stdin(Stdio::null()).stdout(Stdio::null()).status().context("fencepost fuzz")?;
        // An input that makes the program crash by itself is a finding.
        ensure!(matches!(status.code(), Some(0 | 1)), "what AFL++ found in {map} cannot be counted: {status}");
        let cases = lines(&folder.join("fuzz-out").join(CASES))?;
        let mut reached = 0.0;
        let pm_transitions = cases.iter().map(|case| {
            reached += number(case, "pm_transitions");
            // Seeds are run in the order of their names, which is that of AFL++.
            let input = queue.get(number(case, "execution") as usize - 1);
            (clock.cpu(input.map_or(0.0, |path| found_after(path))), reached)
        });
        let mut pm_transitions: Vec<(f64, f64)> = pm_transitions.collect();
        pm_transitions.push((self.time.as_secs_f64(), reached));
        let executions = done.and_then(|number| number.trim().parse().ok()).unwrap_or(0);
        Ok(Side { executions, cases: queue.len(), pm_paths: pm_paths(&cases), pm_transitions })
    }

    fn kept(&self, setup: &Setup, side: &str, map: &str) -> PathBuf {
        self.keep.as_deref().unwrap_or(setup.scratch.path()).join(format!("{side}-{map}"))
    }

    /// Lets AFL++ fuzz, and keeps its queue.
    fn afl(&self, setup: &Setup, map: &str) -> anyhow::Result<()> {
        let kept = self.kept(setup, "afl", map);
        if kept.join("clock").exists() {
            return Ok(());
        }
        let folder = setup.scratch.fresh("theirs")?;
        let mut command = Command::new("afl-fuzz");
        command.current_dir(&folder).env("PMEM_IS_PMEM_FORCE", "1").env("FRESH_POOL", folder.join("pool"));
        for name in ["AFL_NO_UI", "AFL_SKIP_CPUFREQ", "AFL_NO_AFFINITY", "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES"] {
            command.env(name, "1");
        }
        command.args(["-i", "../seeds", "-o", "afl", "-m", "none", "-t", "10000", "-s", &self.seed.to_string()]);
        command.arg("--").arg(&setup.for_afl).args([map, "pool", "1"]);
        let clock = within(&mut command, self.time, &folder.join("output"))?;
        let queue = folder.join("afl/default/queue");
        fs::create_dir_all(kept.join("queue"))?;
        for entry in fs::read_dir(&queue).into_iter().flatten().flatten().filter(|entry| entry.path().is_file()) {
            fs::copy(entry.path(), kept.join("queue").join(entry.file_name()))?;
        }
        let output = fs::read_to_string(folder.join("output")).unwrap_or_default();
        ensure!(fs::read_dir(kept.join("queue"))?.next().is_some(), "afl-fuzz kept nothing:\n{output}");
        fs::copy(folder.join("afl/default/fuzzer_stats"), kept.join("fuzzer_stats"))?;
        fs::write(kept.join("clock"), clock.text())?;
        Ok(())
    }
}

/// Processor seconds after seconds of the clock, now and then.
#[derive(Debug, Default, PartialEq)]
struct Clock(Vec<(f64, f64)>);

impl Clock {
    /// Processor time that was used when it was so late.
    fn cpu(&self, second: f64) -> f64 {
        self.0.iter().find(|(wall, _)| *wall >= second).or(self.0.last()).map_or(second, |sample| sample.1)
    }

    fn text(&self) -> String {
        self.0.iter().map(|(wall, cpu)| format!("{wall:.2} {cpu:.2}\n")).collect()
    }

    fn parse(text: &str) -> Clock {
        let sample =
            |line: &str| line.split_once(' ').and_then(|(wall, cpu)| Some((wall.parse().ok()?, cpu.parse().ok()?)));
        Clock(text.lines().filter_map(sample).collect())
    }
}

/// Runs a fuzzer until it has used so much processor time, then ends it.
fn within(command: &mut Command, time: Duration, output: &Path) -> anyhow::Result<Clock> {
    let log = File::create(output)?;
    let group = CpuGroup::of(command);
    let mut child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
    let begun = Instant::now();
    let mut clock = Clock::default();
    let mut told = false;
    loop {
        if child.try_wait()?.is_some() {
            group.seconds();
            return Ok(clock);
        }
        let used = group.so_far().unwrap_or_else(|| tree_time(child.id()));
        clock.0.push((begun.elapsed().as_secs_f64(), used.as_secs_f64()));
        if used >= time && !told {
            told = true;
            // Not SIGINT, which a shell makes its background jobs ignore.
            // SAFETY: it passes no pointer.
            unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
        }
        std::thread::sleep(LOOK);
    }
}

/// When AFL++ found it, from the name of the file, in seconds: `id:000004,src:000000,time:162,execs:91,...`
fn found_after(path: &Path) -> f64 {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let millis = name.split(',').find_map(|part| part.strip_prefix("time:")?.parse::<f64>().ok());
    millis.unwrap_or(0.0) / 1000.0
}

fn pm_paths(cases: &[Value]) -> usize {
    cases.iter().filter(|case| case["priority"] != "low").count()
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or(0.0)
}

fn lines(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_at_a_second_of_the_clock() {
        let clock = Clock(vec![(0.5, 0.25), (1.0, 0.75), (1.5, 1.0)]);
        assert_eq!((clock.cpu(0.0), clock.cpu(0.75), clock.cpu(9.0)), (0.25, 0.75, 1.0));
        assert_eq!(Clock::parse(&clock.text()), clock);
    }

    #[test]
    fn names_of_afl_tell_when() {
        assert_eq!(found_after(Path::new("queue/id:000004,src:000000,time:1620,execs:91,op:havoc")), 1.62);
        assert_eq!(found_after(Path::new("queue/id:000000,time:0,execs:0,orig:one")), 0.0);
    }

    #[test]
    fn paths_are_cases_with_news_in_the_pm_map() {
        let case = |priority: &str| serde_json::json!({ "priority": priority });
        assert_eq!(pm_paths(&[case("high"), case("low"), case("medium")]), 2);
    }
}
