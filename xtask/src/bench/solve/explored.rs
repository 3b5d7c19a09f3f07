//! One `fencepost explore`, and what it told.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::Value;
use targets::pmdk_examples::Example;

use super::Context;

/// A program, with what is symbolic.
pub struct Subject {
    pub name: String,
    /// Content of a file `input` that `--seed` or `--ops` names.
    pub input: String,
    /// Options of `explore`.
    pub options: Vec<String>,
    pub command: Vec<OsString>,
    /// What must be there before it starts.
    pub example: Option<Example>,
}

/// What counts is CPU time; the clock ends what waits for ever.
const CLOCK_FACTOR: u64 = 30;

/// What an exploration told.
pub struct Explored {
    pub findings: Vec<Value>,
    pub summary: Value,
    /// Of the findings: the input as text, or, if only arguments are symbolic, the command.
    pub inputs: Vec<String>,
}

impl Explored {
    pub fn number(&self, name: &str) -> f64 {
        self.summary[name].as_f64().unwrap_or(0.0)
    }
}

/// The command, in a fresh folder of this name.
pub fn command(context: &Context, subject: &Subject, name: &str, options: &[&str]) -> anyhow::Result<Command> {
    let folder = context.scratch.fresh(&format!("explore-{name}"))?;
    std::fs::write(folder.join("input"), &subject.input)?;
    subject.example.map_or(Ok(()), |example| example.prepare(&folder))?;
    let mut command = Command::new(&context.fencepost);
    command.current_dir(&folder).env("PMEM_IS_PMEM_FORCE", "1").stdin(Stdio::null());
    command.env("PMEM2_FORCE_GRANULARITY", "CACHE_LINE");
    let time = [context.time.to_string(), (context.time * CLOCK_FACTOR).to_string()];
    command.args(["explore", "--message-format", "json", "--solver", "embedded"]);
    command.args(["--cpu-time", &time[0], "--time", &time[1]]);
    command.args(&subject.options).args(options).arg("--").args(&subject.command);
    Ok(command)
}

pub fn explore(context: &Context, subject: &Subject, name: &str, options: &[&str]) -> anyhow::Result<Explored> {
    let mut command = command(context, subject, name, options)?;
    let output = command.output().context("fencepost explore")?;
    told(&command, &output)
}

pub fn told(command: &Command, output: &std::process::Output) -> anyhow::Result<Explored> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut explored = Explored { findings: Vec::new(), summary: Value::Null, inputs: Vec::new() };
    let folder = command.get_current_dir().unwrap_or(std::path::Path::new("."));
    for value in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if value["type"] == "finding" {
            explored.inputs.push(shown(&folder.join(value["input"].as_str().unwrap_or_default())));
            explored.findings.push(value);
        } else if value["type"] == "exploration" {
            explored.summary = value;
        }
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(!explored.summary.is_null(), "no summary from {command:?}:\n{text}{errors}");
    Ok(explored)
}

/// Content of an input, or the command that stands beside it if it is empty.
fn shown(input: &std::path::Path) -> String {
    let content = std::fs::read(input).unwrap_or_default();
    if !content.is_empty() {
        return content.escape_ascii().to_string();
    }
    let script = std::fs::read(input.with_extension("sh")).unwrap_or_default();
    let command = script.split(|&byte| byte == b'\n').rfind(|line| !line.is_empty()).unwrap_or_default();
    // Without the folder of the program.
    let program = command.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(command.len());
    let name = command[..program].iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    command[name..].escape_ascii().to_string()
}
