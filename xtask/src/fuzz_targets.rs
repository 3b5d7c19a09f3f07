//! `cargo xtask fuzz-targets`: every bug of `targets/fuzz` is found, from nothing but a grammar or a dictionary, and twins stay clean.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use targets::crash::{CrashTarget, TWIN, Variant, rare};

use crate::build;
use crate::scratch::Scratch;

#[derive(Args, Debug)]
pub struct FuzzTargets {
    /// How long each campaign may take.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    time: Duration,
    /// Programs at a time.
    #[arg(long, default_value_t = 2)]
    jobs: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only programs whose name contains this. Repeatable.
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// Only the bug with this number; 0 is the twin. Repeatable.
    #[arg(long = "bug", value_name = "NUMBER")]
    bugs: Vec<u32>,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_secs)
}

/// What a campaign came to.
struct CampaignOutcome {
    executions: u64,
    took: Duration,
    /// Rule and guilty lines of each finding.
    findings: Vec<(String, Vec<u64>)>,
    text: String,
}

impl FuzzTargets {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let scratch = Scratch::new("fuzz-targets")?;
        let built = build::targets_folder()?.join("fuzz");
        println!(
            "## `fencepost fuzz --until-found --time {}s --jobs {} --seed {}`\n",
            self.time.as_secs(),
            self.jobs,
            self.seed
        );
        println!("| program | bug | found | executions | seconds |\n| --- | --- | --- | ---: | ---: |");
        let mut missed = 0;
        for target in rare()?.iter().filter(|target| self.wants(&target.name)) {
            for variant in std::iter::once(TWIN).chain(target.variants()) {
                if !self.bugs.is_empty() && !self.bugs.contains(&variant.0) {
                    continue;
                }
                let program = target.build(variant, &built)?;
                let outcome = self.campaign(&fencepost, target, &program, &scratch)?;
                let (words, good) = judged(target, variant, &outcome);
                missed += u32::from(!good);
                println!(
                    "| {} | {variant} | {words} | {} | {:.0} |",
                    target.name,
                    outcome.executions,
                    outcome.took.as_secs_f64()
                );
                if !good {
                    eprintln!("{}", outcome.text.trim_end());
                }
            }
        }
        println!("\n{missed} not as they should be");
        Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| name.contains(wanted.as_str()))
    }

    fn campaign(
        &self,
        fencepost: &Path,
        target: &CrashTarget,
        program: &Path,
        scratch: &Scratch,
    ) -> anyhow::Result<CampaignOutcome> {
        let folder = scratch.fresh("campaign")?;
        let mut command = Command::new(fencepost);
        command.current_dir(&folder).args(["fuzz", "--until-found", "--no-lint", "--progress", "never"]);
        command.args(["--message-format", "json", "--time", &format!("{}s", self.time.as_secs())]);
        command.args(["--jobs", &self.jobs.to_string(), "--seed", &self.seed.to_string()]);
        match &target.grammar {
            Some(grammar) => command.arg("--grammar").arg(grammar),
            None => command.arg("--dict").arg(target.source.with_file_name("../words.dict")),
        };
        let words = target.run_command(program, Path::new("pool"));
        if words.iter().any(|word| word == "{socket}") {
            command.args(["--op-socket", "{socket}"]);
        }
        command.envs(target.env.iter().map(|(name, value)| (name, value))).arg("--").args(words);
        let begun = Instant::now();
        let output = command.stdin(Stdio::null()).output().context("fencepost fuzz")?;
        let took = begun.elapsed();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut outcome = CampaignOutcome { executions: 0, took, findings: Vec::new(), text: text.clone() };
        outcome.text.push_str(&String::from_utf8_lossy(&output.stderr));
        for line in text.lines() {
            if line.contains("\"type\":\"finding\"") {
                outcome.findings.push((word(line, "rule").unwrap_or_default(), lines(line)));
            }
            if line.contains("\"type\":\"summary\"") {
                outcome.executions = number(line, "events").unwrap_or(0);
            }
        }
        Ok(outcome)
    }
}

/// What to print, and whether it is as it should be.
fn judged(target: &CrashTarget, variant: Variant, outcome: &CampaignOutcome) -> (String, bool) {
    let found: Vec<String> = outcome
        .findings
        .iter()
        .map(|(rule, lines)| format!("{rule}, line {}", lines.first().copied().unwrap_or(0)))
        .collect();
    if variant == TWIN {
        let clean = found.is_empty();
        return (
            if clean { "clean, as it should be".to_owned() } else { format!("FALSE: {}", found.join("; ")) },
            clean,
        );
    }
    let guilty: Vec<u64> = target.expected(variant).map(|expected| u64::from(expected.line)).collect();
    let hit = outcome.findings.iter().any(|(_, lines)| lines.iter().any(|line| guilty.contains(line)));
    match (hit, found.is_empty()) {
        (true, _) => (found.join("; "), true),
        (false, true) => ("no".to_owned(), false),
        (false, false) => (format!("another line: {}", found.join("; ")), false),
    }
}

/// Fields of the one-line JSON that Fencepost prints; a parser would be the only use of one here.
fn word(line: &str, name: &str) -> Option<String> {
    let rest = line.split_once(&format!("\"{name}\":\""))?.1;
    rest.split('"').next().map(str::to_owned)
}

fn number(line: &str, name: &str) -> Option<u64> {
    let rest = line.split_once(&format!("\"{name}\":"))?.1;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The source lines of a finding's locations.
fn lines(line: &str) -> Vec<u64> {
    let Some((_, locations)) = line.split_once("\"locations\":[") else { return Vec::new() };
    let locations = locations.split(']').next().unwrap_or_default();
    locations
        .split("\"line\":")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_line() {
        let line =
            r#"{"type":"finding","rule":"FP0602","locations":[{"file":"a","line":7,"x":1},{"line":12}],"events":30}"#;
        assert_eq!(word(line, "rule").as_deref(), Some("FP0602"));
        assert_eq!(lines(line), [7, 12]);
        assert_eq!(number(line, "events"), Some(30));
    }
}
