//! One measured run of `fencepost crash` or `fencepost check`: its cost, and what its summary says.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::measure::{self, Cost};

/// What `fencepost` printed last, and the titles of what it found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub events: u64,
    pub crash_points: u64,
    pub failure_points: u64,
    pub states_decided: u64,
    pub recovery_runs: u64,
    pub runs_saved: u64,
    pub complete: bool,
    pub findings: Vec<String>,
}

impl Summary {
    /// From JSON Lines; the target's own output may be among them.
    pub fn parse(text: &str) -> Option<Summary> {
        let last = &text[text.rfind("{\"type\":\"summary\"")?..];
        Some(Summary {
            events: number(last, "events")?,
            crash_points: number(last, "crash_points")?,
            failure_points: number(last, "failure_points")?,
            states_decided: number(last, "states_decided")?,
            recovery_runs: number(last, "recovery_runs")?,
            runs_saved: number(last, "runs_saved")?,
            complete: last.contains("\"complete\":true"),
            findings: text.split("{\"type\":\"finding\"").skip(1).map(title).collect(),
        })
    }
}

pub(super) fn number(object: &str, field: &str) -> Option<u64> {
    let (_, rest) = object.split_once(&format!("\"{field}\":"))?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The title of a finding, as JSON has it.
fn title(object: &str) -> String {
    let title = object.split_once("\"title\":\"").map_or(object, |(_, rest)| rest);
    title.split("\",\"").next().unwrap_or(title).to_owned()
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Done {
    pub wall: Duration,
    pub cost: Cost,
    pub summary: Summary,
    /// What it wrote to standard error: it says so there if it could not do as it was asked.
    pub notes: String,
}

/// Fencepost, and the folder in which it runs.
#[derive(Clone, Debug)]
pub struct Fencepost<'a> {
    pub executable: &'a Path,
    pub folder: &'a Path,
}

impl Fencepost<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(self.executable);
        // On a file system without DAX libpmem would call msync instead of flushing.
        command.current_dir(self.folder).env("PMEM_IS_PMEM_FORCE", "1").stdin(Stdio::null());
        command
    }

    /// Records a command into the file `trace` of the folder.
    pub fn record(&self, workload: &[String]) -> anyhow::Result<()> {
        let mut command = self.command();
        command.args(["record", "--quiet", "--exit-with-target", "-o", "trace", "--"]).args(workload);
        let status: ExitStatus = command.stdout(Stdio::null()).status()?;
        ensure!(status.success(), "cannot be recorded ({status}): {command:?}");
        Ok(())
    }

    /// `fencepost crash` on the file `trace`, without a budget and without a journal.
    pub fn crash(&self, recovery: &[String], options: &[&str]) -> anyhow::Result<Done> {
        let mut command = self.command();
        command.args(["crash", "--no-journal", "--budget", "none", "--message-format", "json", "--recover"]);
        command.arg(recovery.join(" ")).args(options).arg("trace");
        self.measured(&mut command)
    }

    /// `fencepost check` on a command that reads `input`.
    pub fn check(&self, workload: &[String], input: &Path, options: &[&str]) -> anyhow::Result<Done> {
        let mut command = self.command();
        command.args(["check", "--budget", "none", "--message-format", "json"]).args(options).arg("--").args(workload);
        self.measured(command.stdin(File::open(input)?))
    }

    fn measured(&self, command: &mut Command) -> anyhow::Result<Done> {
        let file = |name: &str| -> PathBuf { self.folder.join(name) };
        command.stdout(File::create(file("stdout"))?).stderr(File::create(file("stderr"))?);
        let start = Instant::now();
        let cost = measure::run(command)?;
        let wall = start.elapsed();
        let read =
            |name: &str| -> anyhow::Result<String> { Ok(String::from_utf8_lossy(&fs::read(file(name))?).into_owned()) };
        let (stdout, notes) = (read("stdout")?, read("stderr")?);
        // 1: there are findings.
        ensure!(cost.exit_code <= 1, "{command:?}: exit code {}\n{notes}", cost.exit_code);
        let summary = Summary::parse(&stdout).with_context(|| format!("{command:?} printed no summary\n{notes}"))?;
        ensure!(summary.complete, "{command:?} did not complete\n{notes}");
        Ok(Done { wall, cost, summary, notes })
    }
}

impl Done {
    /// Of the processor time, that of the recoveries and the process that forks them.
    pub fn recoveries_cpu(&self) -> Duration {
        self.cost.cpu - self.cost.own
    }

    /// Says what a reader of the figures must know: that the fork server was not used.
    pub fn warn_of_native_runs(&self, what: &str) {
        if self.notes.contains("native mode") {
            println!("{what}: {}", self.notes.trim());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_from_among_the_targets_output() {
        let text = "$ {\"type\":\"finding\",\"id\":\"1\",\"title\":\"`a` too late\",\"locations\":[]}\n1\n\
                    {\"type\":\"summary\",\"findings\":1,\"events\":12,\"crash_points\":5,\"failure_points\":4,\
                    \"states_possible\":\"9\",\"states_decided\":8,\"recovery_runs\":3,\"runs_saved\":6,\"complete\":true}\n";
        let summary = Summary::parse(text).expect("there is a summary");
        assert_eq!((summary.events, summary.crash_points, summary.failure_points), (12, 5, 4));
        assert_eq!((summary.states_decided, summary.recovery_runs, summary.runs_saved), (8, 3, 6));
        assert!(summary.complete);
        assert_eq!(summary.findings, ["`a` too late"]);
        assert_eq!(Summary::parse("no JSON"), None);
    }
}
