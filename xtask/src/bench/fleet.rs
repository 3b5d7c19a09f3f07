//! `cargo xtask bench fleet`: campaigns with 1, 2 and 4 workers beside the same search on one machine: the same findings, the CPU time of
//! all processes, the recoveries, and how many of them workers save each other by sharing verdicts.
//!
//! CPU time of all processes and not time, so that a machine that does other things as well can measure it.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::Value;
use targets::crash::{Variant, rare, with_operations};

use super::cpu_group::CpuGroup;
use crate::build;
use crate::file_systems::Bed;

const TARGETS: [(&str, u32); 5] =
    [("c/undo", 1), ("c/btree", 1), ("c/level", 1), ("cpp/skiplist", 1), ("rust/log_map", 1)];

#[derive(Args, Debug)]
pub struct FleetBench {
    /// Operations of each program.
    #[arg(long, default_value_t = 30)]
    count: usize,
    /// Workloads of seq-2, drawn with seed 1, that the file system runs.
    #[arg(long, default_value_t = 56)]
    seq_2: usize,
    /// Executions of the fuzzing campaign.
    #[arg(long, default_value_t = 1280)]
    executions: usize,
    /// Only campaigns whose name begins so.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
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
    findings: BTreeSet<String>,
    /// States, or executions of a fuzzing campaign.
    decided: u64,
    runs: u64,
    cpu: f64,
}

/// Who does the work.
#[derive(Clone, Copy, Debug)]
enum By {
    /// One process with so many jobs.
    Jobs(usize),
    /// Workers with one job each, which tell each other verdicts or do not.
    Workers { count: usize, exchange: bool },
}

/// A search that workers can share.
struct FleetCampaign {
    name: String,
    /// The subcommand.
    verb: Vec<String>,
    /// What follows it; `{folder}` is a new folder.
    words: Vec<String>,
    environment: Vec<(String, String)>,
    /// Name in the summary of how much was done, and how many runs of recovery code it took.
    numbers: [&'static str; 2],
}

impl FleetBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let bed = Bed::new(self.fencepost.as_deref())?;
        let redis = Redis::start()?;
        println!("| campaign | workers | same findings | states or executions | recoveries | CPU s | efficiency |");
        println!("| --- | --- | --- | --- | --- | --- | --- |");
        for campaign in self.campaigns(&bed)? {
            if self.only.as_deref().is_some_and(|only| !campaign.name.starts_with(only)) {
                continue;
            }
            for (number, count) in self.workers.iter().enumerate() {
                // As many threads as workers: two busy threads of one core need more time than one alone.
                let here = campaign.perform(&bed, &redis, By::Jobs(*count))?;
                campaign.row(&format!("local, --jobs {count}"), &here, &here);
                let there = campaign.perform(&bed, &redis, By::Workers { count: *count, exchange: true })?;
                campaign.row(&count.to_string(), &there, &here);
                let name = &campaign.name;
                ensure!(there.findings == here.findings, "{name}: {:?}, not {:?}", there.findings, here.findings);
                ensure!(there.decided == here.decided, "{name}: {}, not {}", there.decided, here.decided);
                if number + 1 == self.workers.len() && campaign.verb == ["check"] {
                    let alone = campaign.perform(&bed, &redis, By::Workers { count: *count, exchange: false })?;
                    campaign.row(&format!("{count}, not sharing"), &alone, &here);
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn campaigns(&self, bed: &Bed) -> anyhow::Result<Vec<FleetCampaign>> {
        let built = build::targets_folder()?.join("fleet");
        let mut campaigns = Vec::new();
        for (name, variant) in TARGETS {
            let targets = with_operations()?;
            let target = targets.iter().find(|target| target.name == name).with_context(|| name.to_owned())?;
            let program = target.build(Variant(variant), &built)?;
            let (count, grammar) = (self.count.to_string(), target.grammar.as_ref().context("it has no grammar")?);
            let mut words = owned(&["--budget", "none", "--no-select", "--count", &count, "--grammar"]);
            words.push(grammar.display().to_string());
            words.extend(target.options.iter().cloned());
            words.push("--".into());
            words.extend(target.run_command(&program, Path::new("{folder}/pool")));
            campaigns.push(FleetCampaign {
                name: format!("{name} {variant}, {count} operations"),
                verb: owned(&["check"]),
                words,
                environment: target.env.clone(),
                numbers: ["states_decided", "recovery_runs"],
            });
        }
        let (daemon, sample) = (targets::fs::build(&built, 3)?, bed.sample("seq-2", self.seq_2, 1)?);
        let (mkfs, fuse) =
            (format!("{} --mkfs {{pool}}", daemon.display()), format!("{} {{pool}} -f -s {{mount}}", daemon.display()));
        let sample = sample.display().to_string();
        campaigns.push(FleetCampaign {
            name: format!("fs 3, {} of seq-2", self.seq_2),
            verb: owned(&["fs", "check"]),
            words: owned(&["--ops", &sample, "--mkfs", &mkfs, "--fuse", &fuse]),
            environment: Vec::new(),
            numbers: ["states_decided", "recovery_runs"],
        });
        let ring = rare()?.into_iter().find(|target| target.name == "c/ring").context("targets/fuzz has no c/ring")?;
        let (program, executions) = (ring.build(Variant(1), &built)?, self.executions.to_string());
        let mut words = owned(&["--seed", "3", "--executions", &executions, "--slice", "40", "--check-budget", "60s"]);
        words.extend(["--grammar".into(), ring.grammar.as_ref().context("it has no grammar")?.display().to_string()]);
        words.push("--".into());
        // The same path everywhere: findings name it.
        words.extend(ring.run_command(&program, &built.join("ring-pool")));
        campaigns.push(FleetCampaign {
            name: format!("fuzz c/ring 1, {executions} executions"),
            verb: owned(&["fuzz"]),
            words,
            environment: Vec::new(),
            numbers: ["events", "recovery_runs"],
        });
        Ok(campaigns)
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

impl FleetCampaign {
    fn row(&self, workers: &str, there: &FleetOutcome, here: &FleetOutcome) {
        let same = if there.findings == here.findings { "yes" } else { "NO" };
        println!(
            "| {} | {workers} | {} ({same}) | {} | {} | {:.1} | {:.0} % |",
            self.name,
            there.findings.len(),
            there.decided,
            there.runs,
            there.cpu,
            here.cpu / there.cpu * 100.0
        );
    }

    fn perform(&self, bed: &Bed, redis: &Redis, by: By) -> anyhow::Result<FleetOutcome> {
        let (jobs, workers, exchange) = match by {
            By::Jobs(jobs) => (jobs, 0, true),
            By::Workers { count, exchange } => (1, count, exchange),
        };
        let folder = bed.scratch.fresh("campaign")?;
        let url = format!("redis://127.0.0.1:{}/bench", redis.port);
        let mut command = Command::new(&bed.fencepost);
        command.current_dir(&folder).envs(self.environment.iter().cloned()).args(&self.verb);
        command.args(["--message-format", "json", "--progress", "never", "--jobs", &jobs.to_string()]);
        if workers > 0 {
            command.args(["--fleet", &url]);
        }
        let folder_name = folder.display().to_string();
        command.args(self.words.iter().map(|word| word.replace("{folder}", &folder_name)));
        let before = redis.cpu()?;
        let mut groups = vec![CpuGroup::of(&mut command)];
        let mut there = Vec::new();
        for _ in 0..workers {
            let mut worker = Command::new(&bed.fencepost);
            worker.args(["worker", &url, "--jobs", "1"]).args((!exchange).then_some("--no-exchange"));
            groups.push(CpuGroup::of(&mut worker));
            there.push(worker.current_dir(&folder).stderr(Stdio::null()).spawn()?);
        }
        let ended = command.stdin(Stdio::null()).output()?;
        if !matches!(ended.status.code(), Some(0 | 1)) {
            // They wait for a campaign.
            there.iter_mut().try_for_each(Child::kill)?;
        }
        for mut worker in there {
            worker.wait()?;
        }
        let stderr = String::from_utf8_lossy(&ended.stderr);
        ensure!(matches!(ended.status.code(), Some(0 | 1)), "{command:?}: {}\n{stderr}", ended.status);
        let served = if workers > 0 { redis.cpu()? - before } else { 0.0 };
        let cpu = groups.into_iter().map(CpuGroup::seconds).sum::<f64>() + served;
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        let lines = text.lines().filter(|line| line.starts_with('{'));
        let mut values: Vec<Value> = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
        let summary = values.pop().context("there is no summary")?;
        let [decided, runs] = self.numbers.map(|name| summary[name].as_u64().unwrap_or(0));
        let id = |value: &Value| value["id"].as_str().unwrap_or_default().to_owned();
        let findings = values.iter().filter(|value| value["type"] == "finding").map(id).collect();
        Ok(FleetOutcome { findings, decided, runs, cpu })
    }
}
