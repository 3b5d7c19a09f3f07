//! `cargo xtask bench fleet`: campaigns with 1, 2 and 4 workers beside the same check on one machine: the same findings, the CPU time of
//! all processes, the recoveries, and how many of them workers save each other by sharing verdicts.
//!
//! CPU time and not time, so that a machine that does other things as well can measure it.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::Value;
use targets::crash::{CrashTarget, Variant, with_operations};

use super::measure::children_cpu;
use crate::build;
use crate::scratch::Scratch;

const TARGETS: [(&str, u32); 5] =
    [("c/undo", 1), ("c/btree", 1), ("c/level", 1), ("cpp/skiplist", 1), ("rust/log_map", 1)];

#[derive(Args, Debug)]
pub struct FleetBench {
    /// Operations of each program.
    #[arg(long, default_value_t = 30)]
    count: usize,
    /// Numbers of workers.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    workers: Vec<usize>,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

/// A server on a port of its own, that keeps nothing.
pub struct Redis {
    pub port: u16,
    server: Child,
}

impl Redis {
    pub fn start() -> anyhow::Result<Redis> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut server = Command::new("redis-server");
        server.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        let server = server.stdout(Stdio::null()).spawn().context("cannot run redis-server")?;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Redis { port, server })
    }

    /// A number of what the server says about itself.
    pub fn info(&self, name: &str) -> anyhow::Result<f64> {
        let said = Command::new("redis-cli").args(["-p", &self.port.to_string(), "info", "everything"]).output()?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.trim().parse().ok()).with_context(|| format!("redis says no {name}"))
    }

    pub fn cpu(&self) -> anyhow::Result<f64> {
        Ok(self.info("used_cpu_user")? + self.info("used_cpu_sys")?)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

struct FleetOutcome {
    findings: Vec<String>,
    decided: u64,
    runs: u64,
    cpu: f64,
}

impl FleetBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let scratch = Scratch::new("bench-fleet")?;
        let redis = Redis::start()?;
        println!("| target | workers | same findings | states decided | recoveries | CPU s | efficiency |");
        println!("| --- | --- | --- | --- | --- | --- | --- |");
        for (name, variant) in TARGETS {
            let targets = with_operations()?;
            let target = targets.iter().find(|target| target.name == name).with_context(|| name.to_owned())?;
            let run = Run { bench: self, fencepost: &fencepost, redis: &redis, target, variant: Variant(variant) };
            let here = run.outcome(&scratch.fresh("here")?, 0, true)?;
            run.row("local", &here, &here);
            for count in &self.workers {
                let there = run.outcome(&scratch.fresh("there")?, *count, true)?;
                run.row(&count.to_string(), &there, &here);
                ensure!(there.findings == here.findings, "{name}: {:?}, not {:?}", there.findings, here.findings);
                ensure!(there.decided == here.decided, "{name}: {} states, not {}", there.decided, here.decided);
            }
            if let Some(count) = self.workers.last() {
                let alone = run.outcome(&scratch.fresh("alone")?, *count, false)?;
                run.row(&format!("{count}, not sharing"), &alone, &here);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

struct Run<'a> {
    bench: &'a FleetBench,
    fencepost: &'a Path,
    redis: &'a Redis,
    target: &'a CrashTarget,
    variant: Variant,
}

impl Run<'_> {
    fn row(&self, workers: &str, there: &FleetOutcome, here: &FleetOutcome) {
        let same = if there.findings == here.findings { "yes" } else { "NO" };
        println!(
            "| {} {} | {workers} | {} ({same}) | {} | {} | {:.1} | {:.0} % |",
            self.target.name,
            self.variant.0,
            there.findings.len(),
            there.decided,
            there.runs,
            there.cpu,
            here.cpu / there.cpu * 100.0
        );
    }

    fn outcome(&self, folder: &Path, workers: usize, exchange: bool) -> anyhow::Result<FleetOutcome> {
        let program = self.target.build(self.variant, &build::targets_folder()?.join("fleet"))?;
        let (pool, url) = (folder.join("pool"), format!("redis://127.0.0.1:{}/bench", self.redis.port));
        let mut command = Command::new(self.fencepost);
        command.current_dir(folder).envs(self.target.env.iter().cloned());
        command.args(["check", "--message-format", "json", "--budget", "none", "--jobs", "1", "--no-select"]);
        command.args(["--progress", "never", "--count", &self.bench.count.to_string()]);
        command.arg("--grammar").arg(self.target.grammar.as_ref().context("it has no grammar")?);
        if workers > 0 {
            command.args(["--fleet", &url]);
        }
        command.args(&self.target.options).arg("--").args(self.target.run_command(&program, &pool));
        let before = (children_cpu(), self.redis.cpu()?);
        let mut there = Vec::new();
        for _ in 0..workers {
            let mut worker = Command::new(self.fencepost);
            worker.args(["worker", &url, "--jobs", "1"]).args((!exchange).then_some("--no-exchange"));
            there.push(worker.current_dir(folder).stderr(Stdio::null()).spawn()?);
        }
        let ended = command.stdin(Stdio::null()).stderr(Stdio::piped()).output()?;
        for mut worker in there {
            worker.wait()?;
        }
        let cpu = children_cpu() - before.0 + if workers > 0 { self.redis.cpu()? - before.1 } else { 0.0 };
        let stderr = String::from_utf8_lossy(&ended.stderr);
        ensure!(matches!(ended.status.code(), Some(0 | 1)), "{command:?}: {}\n{stderr}", ended.status);
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        let lines = text.lines().filter(|line| line.starts_with('{'));
        let mut values: Vec<Value> = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
        let summary = values.pop().context("there is no summary")?;
        let number = |name: &str| summary[name].as_u64().unwrap_or(0);
        let id = |value: &Value| value["id"].as_str().unwrap_or_default().to_owned();
        let findings = values.iter().filter(|value| value["type"] == "finding").map(id).collect();
        Ok(FleetOutcome { findings, decided: number("states_decided"), runs: number("recovery_runs"), cpu })
    }
}
