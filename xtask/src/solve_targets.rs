//! `cargo xtask solve-targets`: every bug of `targets/solve` by solving, beside fuzzing without it, and the twins.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use targets::solve::{SolveTarget, all};

use crate::build;
use crate::scratch::Scratch;

#[derive(Args, Debug)]
pub struct SolveTargets {
    /// Seconds that solving may take for each program.
    #[arg(long, default_value_t = 300)]
    time: u64,
    /// Seconds that fuzzing without solving gets; 0 leaves it out.
    #[arg(long, default_value_t = 300)]
    fuzz_time: u64,
    /// Paths of each twin.
    #[arg(long, default_value_t = 40)]
    twin_runs: u64,
    /// Of how many programs the bug must be found.
    #[arg(long, default_value_t = 18)]
    least: usize,
    /// Only programs whose name contains this. Repeatable.
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

/// What one way came to.
struct SolveOutcome {
    /// Rule and guilty line of each finding.
    findings: Vec<(String, u64)>,
    seconds: f64,
    /// Runs or executions.
    runs: u64,
}

impl SolveOutcome {
    fn has(&self, target: &SolveTarget) -> bool {
        self.findings.iter().any(|(_, line)| *line == u64::from(target.guilty))
    }

    fn told(&self, target: &SolveTarget) -> String {
        match (self.has(target), self.findings.first()) {
            (true, _) => format!("{:.1} s, {} runs", self.seconds, self.runs),
            (false, None) => format!("no ({:.0} s, {} runs)", self.seconds, self.runs),
            (false, Some((rule, line))) => format!("another: {rule}, line {line}"),
        }
    }
}

impl SolveTargets {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let scratch = Scratch::new("solve-targets")?;
        let built = build::targets_folder()?.join("solve");
        println!("| program | solving | fuzzing without it, {} s | twin |\n| --- | --- | --- | --- |", self.fuzz_time);
        let (mut found, mut all_clean, mut count) = (0, true, 0);
        for target in all()?.iter().filter(|target| self.wants(&target.name)) {
            count += 1;
            let program = target.build(false, &built)?;
            let twin = target.build(true, &built)?;
            let time = self.time.to_string();
            let solved = explore(&fencepost, target, &program, &scratch, &["--until-found", "--time", &time])?;
            let fuzzed = match self.fuzz_time {
                0 => "-".to_owned(),
                time => fuzz(&fencepost, target, &program, &scratch, time)?.told(target),
            };
            let runs = self.twin_runs.to_string();
            let clean = explore(&fencepost, target, &twin, &scratch, &["--time", &time, "--runs", &runs])?;
            found += usize::from(solved.has(target));
            all_clean &= clean.findings.is_empty();
            let twin_told = match clean.findings.is_empty() {
                true => format!("clean, {} paths", clean.runs),
                false => format!("FALSE: {:?}", clean.findings),
            };
            println!("| `{}` | {} | {fuzzed} | {twin_told} |", target.name, solved.told(target));
        }
        println!("\n{found} of {count} found by solving");
        let enough = found >= self.least.min(count);
        Ok(if enough && all_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| name.contains(wanted.as_str()))
    }
}

fn explore(
    fencepost: &Path,
    target: &SolveTarget,
    program: &Path,
    scratch: &Scratch,
    options: &[&str],
) -> anyhow::Result<SolveOutcome> {
    let mut command = Command::new(fencepost);
    command.current_dir(scratch.fresh("explore")?).args([
        "explore",
        "--message-format",
        "json",
        "--solver",
        "embedded",
    ]);
    command.args(options).args(&target.explore).arg("--").arg(program).arg("pool").args(&target.command);
    let outcome = outcome(&mut command, "exploration", "runs")?;
    Ok(outcome)
}

/// From the same bytes that solving starts from.
fn fuzz(
    fencepost: &Path,
    target: &SolveTarget,
    program: &Path,
    scratch: &Scratch,
    time: u64,
) -> anyhow::Result<SolveOutcome> {
    let folder = scratch.fresh("fuzz")?;
    let mut seed = vec![b'1'; bytes(target)];
    let mut arguments: Vec<OsString> = target.command.clone();
    let mut command = Command::new(fencepost);
    command.current_dir(&folder).args(["fuzz", "--until-found", "--message-format", "json", "--progress", "never"]);
    command.args(["--time", &format!("{time}s"), "--seeds", "seeds"]);
    if arguments.iter().any(|word| word.to_string_lossy().contains(":sym")) {
        // Arguments are lines of the input.
        seed = b"mode=111111\n1111\n".to_vec();
        arguments.clear();
        command.arg("--arguments");
    }
    fs::create_dir_all(folder.join("seeds"))?;
    fs::write(folder.join("seeds/one"), seed)?;
    outcome(command.arg("--").arg(program).arg("pool").args(arguments), "summary", "events")
}

fn bytes(target: &SolveTarget) -> usize {
    let number = target.explore.iter().skip_while(|word| *word != "--bytes").nth(1);
    number.and_then(|number| number.parse().ok()).unwrap_or(64)
}

fn outcome(command: &mut Command, summary: &str, runs: &str) -> anyhow::Result<SolveOutcome> {
    let begun = Instant::now();
    let output = command.stdin(Stdio::null()).output().context("fencepost")?;
    let seconds = begun.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    let mut outcome = SolveOutcome { findings: Vec::new(), seconds, runs: 0 };
    let mut ended = false;
    for value in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if value["type"] == "finding" {
            let line = value["locations"][0]["line"].as_u64().unwrap_or(0);
            outcome.findings.push((value["rule"].as_str().unwrap_or_default().to_owned(), line));
        } else if value["type"] == summary {
            outcome.runs = value[runs].as_u64().unwrap_or(0);
            ended = true;
        }
    }
    anyhow::ensure!(ended, "no summary:\n{text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(outcome)
}
