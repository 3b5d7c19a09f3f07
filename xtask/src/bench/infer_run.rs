//! One measured run of `fencepost check` with operations.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// What is checked, and where.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub fencepost: &'a Path,
    /// Empty but for the files that it names, and this case's own.
    pub folder: &'a Path,
    /// Operations, and how the program is asked.
    pub options: &'a [String],
    pub command: &'a [String],
    pub env: &'a [(String, String)],
}

/// What its summary says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferSummary {
    /// In decimal: far beyond any integer.
    pub possible: String,
    pub decided: u64,
    pub runs: u64,
    pub findings: u64,
    pub complete: bool,
    pub wall: Duration,
}

impl Case<'_> {
    pub fn run(&self, strategy: &str, budget: Duration) -> anyhow::Result<InferSummary> {
        let budget = format!("{}s", budget.as_secs().max(1));
        // Each run begins without a pool.
        let pool = self.folder.join("pool");
        if pool.exists() {
            fs::remove_file(pool)?;
        }
        let file = |name: &str| self.folder.join(name);
        let mut command = Command::new(self.fencepost);
        command.current_dir(self.folder).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.args(["check", "--no-lint", "--message-format", "json", "--strategy", strategy, "--budget", &budget]);
        command.args(self.options).arg("--").args(self.command);
        command.stdin(Stdio::null()).stdout(File::create(file("stdout"))?).stderr(File::create(file("stderr"))?);
        let start = Instant::now();
        let status = command.status()?;
        let wall = start.elapsed();
        let read =
            |name: &str| -> anyhow::Result<String> { Ok(String::from_utf8_lossy(&fs::read(file(name))?).into_owned()) };
        // 1: there are findings.
        ensure!(matches!(status.code(), Some(0 | 1)), "{command:?}: {status}\n{}", read("stderr")?);
        let outcome = parse(&read("stdout")?, wall);
        outcome.with_context(|| format!("{command:?} printed no summary"))
    }
}

/// From JSON Lines.
fn parse(text: &str, wall: Duration) -> Option<InferSummary> {
    let last = &text[text.rfind("{\"type\":\"summary\"")?..];
    let number = |field: &str| value(last, field)?.parse().ok();
    Some(InferSummary {
        possible: value(last, "states_possible")?.to_owned(),
        decided: number("states_decided")?,
        runs: number("recovery_runs")?,
        findings: text.matches("{\"type\":\"finding\"").count() as u64,
        complete: last.contains("\"complete\":true"),
        wall,
    })
}

/// The digits of a field.
fn value<'t>(object: &'t str, field: &str) -> Option<&'t str> {
    let (_, rest) = object.split_once(&format!("\"{field}\":"))?;
    let digits = rest.trim_start_matches('"');
    Some(&digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read() {
        let text = "{\"type\":\"finding\",\"id\":\"1\"}\n{\"type\":\"finding\",\"id\":\"2\"}\n\
                    {\"type\":\"summary\",\"findings\":2,\"states_possible\":\"123456789012345678901234\",\
                    \"states_decided\":8,\"recovery_runs\":3,\"complete\":false}\n";
        let outcome = parse(text, Duration::from_secs(1)).unwrap();
        assert_eq!((outcome.decided, outcome.runs, outcome.findings, outcome.complete), (8, 3, 2, false));
        assert_eq!(outcome.possible, "123456789012345678901234");
        assert_eq!(parse("", Duration::ZERO), None);
    }
}
