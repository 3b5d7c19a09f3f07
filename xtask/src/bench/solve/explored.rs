//! One `fencepost explore`, and what it told.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::Value;

use super::Context;

/// A program, with what is symbolic.
pub struct Subject {
    pub name: String,
    /// Content of a file `input` that `--seed` or `--ops` names.
    pub input: String,
    /// Options of `explore`.
    pub options: Vec<String>,
    pub command: Vec<OsString>,
}

/// What an exploration told.
pub struct Explored {
    pub findings: Vec<Value>,
    pub summary: Value,
    /// Of the inputs in the findings, as text.
    pub inputs: Vec<String>,
}

impl Explored {
    pub fn number(&self, name: &str) -> f64 {
        self.summary[name].as_f64().unwrap_or(0.0)
    }
}

pub fn command(context: &Context, subject: &Subject, options: &[&str]) -> anyhow::Result<Command> {
    let folder = context.scratch.fresh("explore")?;
    std::fs::write(folder.join("input"), &subject.input)?;
    let mut command = Command::new(&context.fencepost);
    command.current_dir(&folder).env("PMEM_IS_PMEM_FORCE", "1").stdin(Stdio::null());
    command.args(["explore", "--message-format", "json", "--solver", "embedded"]);
    command.args(&subject.options).args(options).arg("--").args(&subject.command);
    Ok(command)
}

pub fn explore(context: &Context, subject: &Subject, options: &[&str]) -> anyhow::Result<Explored> {
    let mut command = command(context, subject, options)?;
    let output = command.output().context("fencepost explore")?;
    told(&command, &output)
}

pub fn told(command: &Command, output: &std::process::Output) -> anyhow::Result<Explored> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut explored = Explored { findings: Vec::new(), summary: Value::Null, inputs: Vec::new() };
    let folder = command.get_current_dir().unwrap_or(std::path::Path::new("."));
    for value in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if value["type"] == "finding" {
            let input = std::fs::read(folder.join(value["input"].as_str().unwrap_or_default())).unwrap_or_default();
            explored.inputs.push(input.escape_ascii().to_string());
            explored.findings.push(value);
        } else if value["type"] == "exploration" {
            explored.summary = value;
        }
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(!explored.summary.is_null(), "no summary from {command:?}:\n{text}{errors}");
    Ok(explored)
}
