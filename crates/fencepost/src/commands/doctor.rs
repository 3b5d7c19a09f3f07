//! `fencepost doctor`: says what this machine allows and which features work on it.

use std::io;

use anstyle::AnsiColor;
use clap::{Args, ValueEnum};
use serde::Serialize;

mod experiments;
mod machine;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost doctor
  fencepost doctor --message-format json

`doctor` changes nothing. Exit codes:
  0  Fencepost works here, possibly with the fallbacks that it names
  2  the engine does not run";

/// Check whether this machine supports what Fencepost needs.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human, value_name = "FORMAT")]
    message_format: Format,
}

/// A check has no place in source code, so the formats for findings do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Human,
    /// One JSON object per line.
    Json,
}

/// How much of what was checked is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Status {
    Ok,
    /// Not there, and the work goes on without it.
    Fallback,
    /// Not there, and nothing else can take its place.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    pub name: &'static str,
    pub status: Status,
    /// What is there.
    pub found: String,
    /// What follows from it for the user, in one line.
    pub consequence: String,
}

impl Check {
    pub fn ok(name: &'static str, found: impl Into<String>, consequence: impl Into<String>) -> Check {
        Check { name, status: Status::Ok, found: found.into(), consequence: consequence.into() }
    }

    pub fn fallback(name: &'static str, found: impl Into<String>, consequence: impl Into<String>) -> Check {
        Check { name, status: Status::Fallback, found: found.into(), consequence: consequence.into() }
    }

    pub fn missing(name: &'static str, found: impl Into<String>, consequence: impl Into<String>) -> Check {
        Check { name, status: Status::Missing, found: found.into(), consequence: consequence.into() }
    }
}

#[derive(Serialize)]
struct JsonCheck<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    check: &'a Check,
}

#[derive(Serialize)]
struct JsonSummary {
    r#type: &'static str,
    works: bool,
    ok: usize,
    fallback: usize,
    missing: usize,
}

impl Doctor {
    pub fn run(&self) -> Exit {
        let checks = [
            experiments::probe(),
            experiments::step(),
            experiments::isolation(),
            experiments::file_systems(),
            machine::memfd(),
            machine::shared_memory(),
            machine::sparse_files(),
            machine::open_files(),
            machine::kernel(),
            machine::cpu(),
            machine::gdb(),
            machine::solvers(),
            machine::virtual_machines(),
            machine::guest_kernel(),
            machine::pmdk_symbols(),
        ];
        let printed = match self.message_format {
            Format::Human => human(&checks),
            Format::Json => json(&checks),
        };
        match render::ended(printed) {
            Exit::Clean if !works(&checks) => Exit::Usage,
            exit => exit,
        }
    }
}

fn works(checks: &[Check]) -> bool {
    number(checks, Status::Missing) == 0
}

fn number(checks: &[Check], status: Status) -> usize {
    checks.iter().filter(|check| check.status == status).count()
}

fn human(checks: &[Check]) -> io::Result<()> {
    for Check { name, status, found, consequence } in checks {
        let (word, colour) = match status {
            Status::Ok => ("ok", AnsiColor::Green),
            Status::Fallback => ("fallback", AnsiColor::Yellow),
            Status::Missing => ("missing", AnsiColor::Red),
        };
        let style = colour.on_default().bold();
        render::result(format_args!("{style}{word:<8}{style:#} {name}: {found}"))?;
        render::result(format_args!("         {consequence}"))?;
    }
    render::result(match (works(checks), number(checks, Status::Fallback)) {
        (false, _) => "Fencepost's engine does not run on this machine.".to_owned(),
        (true, 0) => "Fencepost works on this machine.".to_owned(),
        (true, 1) => "Fencepost works on this machine, with 1 fallback.".to_owned(),
        (true, fallbacks) => format!("Fencepost works on this machine, with {fallbacks} fallbacks."),
    })
}

fn json(checks: &[Check]) -> io::Result<()> {
    for check in checks {
        render::result(serde_json::to_string(&JsonCheck { r#type: "check", check })?)?;
    }
    render::result(serde_json::to_string(&JsonSummary {
        r#type: "summary",
        works: works(checks),
        ok: number(checks, Status::Ok),
        fallback: number(checks, Status::Fallback),
        missing: number(checks, Status::Missing),
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fallbacks_do_not_stop_the_work() {
        let fine = Check::ok("a", "there", "good");
        let without = Check::fallback("b", "not there", "slower");
        assert!(works(&[fine.clone(), without.clone()]));
        assert!(!works(&[fine, without, Check::missing("c", "not there", "nothing works")]));
    }
}
