//! `cargo xtask bench fs`: the file system of `targets/fs` under bounded exhaustive workloads.
//! `cargo xtask fs-others`: file systems that others wrote.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::Value;
use targets::fs::{LAZY, build, build_pmemobjfs};

use crate::bench::cpu_group::CpuGroup;
use crate::build;
use crate::kernel_fs;
use crate::scratch::Scratch;

/// Seq-1, seq-2 and the fsync set on the correct file system: nothing may be found, everything must be decided.
#[derive(Args, Debug)]
pub struct FsBench {
    /// The kernel module of targets/fs/kmod, ext4 and xfs in a virtual machine instead of the FUSE file system.
    #[arg(long)]
    kernel: bool,
    /// Workloads of seq-2, drawn with the seed. [default: all 3,136; with --kernel 112]
    #[arg(long, value_name = "N")]
    seq_2: Option<usize>,
    /// With --kernel: workloads of the fsync set on ext4 and xfs, drawn with the seed.
    #[arg(long, default_value_t = 56)]
    fsync: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

/// File systems that others wrote and that keep their data in a mapped file: pmemobjfs of PMDK's examples, and redoxfs. They must run
/// unharmed; what is found in them is printed.
#[derive(Args, Debug)]
pub struct FsOthers {
    /// Only this one.
    #[arg(long, value_name = "NAME", value_parser = ["pmemobjfs", "redoxfs"])]
    only: Option<String>,
    /// How long each is searched with seq-1, and how long with random workloads, in seconds.
    #[arg(long, default_value_t = 600)]
    seconds: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

pub struct Bed {
    pub fencepost: PathBuf,
    pub scratch: Scratch,
}

/// What a check found, and its summary.
pub struct FsCheckOutcome {
    pub findings: Vec<Value>,
    pub summary: Value,
    pub seconds: f64,
    /// Of all its processes.
    pub cpu: f64,
}

impl Bed {
    pub fn new(fencepost: Option<&Path>) -> anyhow::Result<Bed> {
        let fencepost = match fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        Ok(Bed { fencepost, scratch: Scratch::new("file-systems")? })
    }

    /// A variant of our own file system.
    pub fn check(&self, variant: u32, workloads: &[&str]) -> anyhow::Result<FsCheckOutcome> {
        let program = build(&build::targets_folder()?, variant)?;
        let program = program.display();
        self.check_daemon(
            &format!("{program} --mkfs {{pool}}"),
            &format!("{program} {{pool}} -f -s {{mount}}"),
            workloads,
        )
    }

    fn check_daemon(&self, mkfs: &str, daemon: &str, workloads: &[&str]) -> anyhow::Result<FsCheckOutcome> {
        self.fs_check(&[&["--mkfs", mkfs, "--fuse", daemon], workloads].concat())
    }

    pub fn fs_check(&self, words: &[&str]) -> anyhow::Result<FsCheckOutcome> {
        let folder = self.scratch.fresh("check")?;
        let start = Instant::now();
        let mut command = Command::new(&self.fencepost);
        command
            .args(["fs", "check", "--message-format", "json", "--progress", "never"])
            .args(words)
            // Libpmem takes a file for PM.
            .env("PMEM_IS_PMEM_FORCE", "1")
            .current_dir(&folder);
        let group = CpuGroup::of(&mut command);
        let output = command.output()?;
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), group.seconds());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(matches!(output.status.code(), Some(0 | 1)), "fs check: {}: {error}", output.status);
        let text = String::from_utf8_lossy(&output.stdout);
        let mut findings: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let summary = findings.pop().context("fs check printed no summary")?;
        Ok(FsCheckOutcome { findings, summary, seconds, cpu })
    }

    /// A file with so many workloads of a set.
    pub fn sample(&self, set: &str, count: usize, seed: u64) -> anyhow::Result<PathBuf> {
        let all = Command::new(&self.fencepost).args(["fs", "workloads", "--ace", set]).output()?;
        let text = String::from_utf8_lossy(&all.stdout).into_owned();
        let all: Vec<&str> = text.split("workload ").filter(|part| !part.is_empty()).collect();
        let mut state = seed;
        let mut chosen = BTreeSet::new();
        while chosen.len() < count.min(all.len()) {
            // Knuth's MMIX.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            chosen.insert((state >> 33) as usize % all.len());
        }
        let file = self.scratch.path().join(format!("{set}.ops"));
        let sample: String = chosen.into_iter().map(|number| format!("workload {}", all[number])).collect();
        fs::write(&file, sample)?;
        Ok(file)
    }
}

/// The title of every finding.
fn titles(findings: &[Value]) -> Vec<&str> {
    findings.iter().map(|finding| finding["title"].as_str().unwrap_or_default()).collect()
}

impl FsOthers {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let bed = Bed::new(self.fencepost.as_deref())?;
        let folder = build::targets_folder()?;
        let wanted = |name: &str| self.only.as_deref().is_none_or(|only| only == name);
        let mut systems = Vec::new();
        if wanted("pmemobjfs") {
            let (daemon, mkfs) = build_pmemobjfs(&folder)?;
            systems.push((
                "pmemobjfs",
                format!("{} -s 16777216 {{pool}}", mkfs.display()),
                format!("{} -f -s -ohard_remove {{pool}} {{mount}}", daemon.display()),
            ));
        }
        if wanted("redoxfs") {
            let daemon = redoxfs(&folder)?;
            let daemon = daemon.display();
            systems.push(("redoxfs", format!("{daemon} --mkfs {{pool}}"), format!("{daemon} {{pool}} {{mount}}")));
        }
        let (budget, seed) = (format!("{}s", self.seconds), self.seed.to_string());
        let techniques: [(&str, &[&str]); 2] = [
            ("seq-1", &["--ace", "seq-1", "--budget", &budget, "--no-growth"]),
            ("random", &["--fuzz", &budget, "--seed", &seed, "--no-growth"]),
        ];
        println!("| file system | workloads | crash points | states | recovery runs | findings |");
        println!("| --- | --- | ---: | ---: | ---: | ---: |");
        let mut found = Vec::new();
        for (name, mkfs, daemon) in &systems {
            for (technique, words) in techniques {
                let FsCheckOutcome { findings, summary, .. } = bed.check_daemon(mkfs, daemon, words)?;
                let number = |key: &str| summary[key].as_u64().unwrap_or(0);
                let (decided, wanted) = (number("points_decided"), number("points_wanted"));
                let (states, runs) = (number("states_decided"), number("recovery_runs"));
                println!("| {name} | {technique} | {decided} of {wanted} | {states} | {runs} | {} |", findings.len());
                ensure!(states > 0, "{name}: nothing was decided");
                found.extend(titles(&findings).into_iter().map(|title| format!("{name}: {title}")));
            }
        }
        found.sort();
        found.dedup();
        found.iter().for_each(|title| println!("\n{title}"));
        Ok(ExitCode::SUCCESS)
    }
}

/// Redoxfs as it is published, with its disk in a mapped file; a crate outside the workspace.
fn redoxfs(folder: &Path) -> anyhow::Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../targets/fs/redoxfs/Cargo.toml");
    let target = folder.join("redoxfs");
    let mut cargo = build::cargo();
    cargo.args(["build", "--release", "--locked", "--manifest-path"]).arg(manifest).arg("--target-dir").arg(&target);
    ensure!(cargo.status().context("cannot run cargo")?.success(), "redoxfs does not build");
    Ok(target.join("release/redoxfs-mapped"))
}

/// Seconds that a set may take on 2 cores.
const SEQ_1_GOAL: f64 = 30.0;
const SEQ_2_GOAL: f64 = 30.0 * 60.0;

impl FsBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let bed = Bed::new(self.fencepost.as_deref())?;
        if self.kernel {
            return kernel_fs::bench(&bed, self.seq_2.unwrap_or(112), self.fsync, self.seed);
        }
        let sample = self.seq_2.map(|count| bed.sample("seq-2", count, self.seed)).transpose()?;
        let sample = sample.map(|file| file.display().to_string());
        let (seq_2_name, seq_2) = match (&sample, self.seq_2) {
            (Some(sample), Some(count)) => {
                (format!("{count} of seq-2, seed {}", self.seed), ["--ops", sample.as_str()])
            }
            _ => ("seq-2".to_owned(), ["--ace", "seq-2"]),
        };
        println!(
            "| workloads | crash points | states | recovery runs | saved | wall s | CPU s | states/CPU s | findings |"
        );
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        let runs: [(&str, u32, &[&str], Option<f64>); 3] = [
            ("seq-1", 0, &["--ace", "seq-1"], Some(SEQ_1_GOAL)),
            (&seq_2_name, 0, &seq_2, Some(SEQ_2_GOAL)),
            ("fsync, 60 s per batch", LAZY, &["--ace", "fsync", "--needs-fsync", "--budget", "60s"], None),
        ];
        let mut wrong = Vec::new();
        for (name, variant, workloads, goal) in runs {
            let FsCheckOutcome { findings, summary, seconds, cpu } = bed.check(variant, workloads)?;
            let number = |key: &str| summary[key].as_u64().unwrap_or(0);
            let (states, runs) = (number("states_decided"), number("recovery_runs"));
            println!(
                "| {name} | {} of {} | {states} | {runs} | {:.1} % | {seconds:.0} | {cpu:.0} | {:.0} | {} |",
                number("points_decided"),
                number("points_wanted"),
                100.0 * number("runs_saved") as f64 / states.max(1) as f64,
                states as f64 / cpu.max(0.001),
                findings.len()
            );
            if !findings.is_empty() || states == 0 {
                wrong.push(format!("{name}: the correct file system has findings, or nothing was decided"));
            }
            if let Some(goal) = goal {
                if summary["complete"] != true {
                    wrong.push(format!("{name}: some states with up to two lines in flight were not decided"));
                }
                if seconds > goal {
                    wrong.push(format!("{name}: more than {goal:.0} s"));
                }
            }
        }
        if wrong.is_empty() {
            println!("\nAll states of seq-1 and seq-2 with up to two lines in flight were decided (`few-lines:2`).");
        }
        wrong.iter().for_each(|text| println!("\n{text}"));
        Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
