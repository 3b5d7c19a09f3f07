//! The ways to run a program that are compared, and what each of them says about it.

use std::path::Path;

use super::super::crash_run::number;
use super::run::{Ran, words};

/// How long the usual strategies may search.
const BUDGET: &str = "60s";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Native,
    Record,
    Lint,
    /// The states of Mumak and the least that a crash can leave, at each point whose call path is new.
    CheckFixed,
    /// The usual strategies for as long as [`BUDGET`] says.
    CheckBudget,
    ValgrindNone,
    Memcheck,
    Qemu,
}

impl Way {
    pub const ALL: [Way; 8] = [
        Way::Native,
        Way::Record,
        Way::Lint,
        Way::CheckFixed,
        Way::CheckBudget,
        Way::Qemu,
        Way::ValgrindNone,
        Way::Memcheck,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Way::Native => "native",
            Way::Record => "`fencepost record`",
            Way::Lint => "`fencepost lint` (records, one pass)",
            Way::CheckFixed => "`fencepost check`, two fixed strategies",
            Way::CheckBudget => "`fencepost check --budget 60s`, usual strategies",
            Way::ValgrindNone => "`valgrind --tool=none` (runs, looks at nothing)",
            Way::Memcheck => "`valgrind` (memcheck)",
            Way::Qemu => "`qemu-x86_64` (runs, looks at nothing)",
        }
    }

    /// The name in a plot, and the colour of its line: of middle lightness, for white and for black paper.
    pub fn line(self) -> Option<(&'static str, &'static str)> {
        match self {
            Way::Native => Some(("native", "#808890")),
            Way::Record => Some(("fencepost record", "#60a5fa")),
            Way::Lint => Some(("fencepost lint", "#3b82f6")),
            Way::CheckFixed => Some(("fencepost check (fixed)", "#7c6cf0")),
            // Its time is its budget, whatever the workload.
            Way::CheckBudget => None,
            Way::ValgrindNone => Some(("valgrind --tool=none", "#d97706")),
            Way::Memcheck => Some(("valgrind memcheck", "#e0524d")),
            Way::Qemu => Some(("qemu-x86_64", "#2f9e63")),
        }
    }

    /// The command that runs `program` this way.
    pub fn command(self, fencepost: &Path, program: &[String]) -> Vec<String> {
        let fencepost = fencepost.display().to_string();
        let mut command = match self {
            Way::Native => Vec::new(),
            Way::Record => words(&[&fencepost, "record", "--quiet", "--exit-with-target", "-o", "trace", "--"]),
            Way::Lint => words(&[&fencepost, "lint", "--message-format", "json", "--"]),
            Way::CheckFixed => words(&[
                &fencepost,
                "check",
                "--no-lint",
                "--occurrences",
                "1",
                "--strategy",
                "program-order,guaranteed-only",
                "--budget",
                "none",
                "--message-format",
                "json",
                "--",
            ]),
            Way::CheckBudget => {
                words(&[&fencepost, "check", "--no-lint", "--budget", BUDGET, "--message-format", "json", "--"])
            }
            Way::ValgrindNone => words(&["valgrind", "-q", "--tool=none"]),
            Way::Memcheck => words(&["valgrind", "--tool=memcheck"]),
            Way::Qemu => words(&["qemu-x86_64", "-cpu", "max"]),
        };
        command.extend_from_slice(program);
        command
    }

    /// What it says about the program; nothing if it says nothing about any.
    pub fn said(self, ran: &Ran) -> String {
        match self {
            Way::Native | Way::Record | Way::ValgrindNone | Way::Qemu => String::new(),
            Way::Memcheck => memcheck(&ran.stderr),
            Way::Lint | Way::CheckFixed | Way::CheckBudget => Summary::parse(&ran.stdout).map_or_else(
                || format!("failed: {}", ran.stderr.lines().last().unwrap_or("it said nothing")),
                |summary| summary.to_string(),
            ),
        }
    }
}

/// What memcheck wrote to standard error, in a few words.
pub fn memcheck(stderr: &str) -> String {
    // Valgrind 3.19 does not know clwb and clflushopt, and delivers SIGILL.
    if stderr.contains("unhandled instruction bytes") {
        return "cannot run it (unhandled instruction)".to_owned();
    }
    let summary = stderr.rsplit_once("ERROR SUMMARY: ").map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>());
    match summary.as_deref() {
        Some(["0", ..]) => "nothing".to_owned(),
        Some([errors, "errors", "from", contexts, ..]) => format!("{errors} errors in {contexts} contexts"),
        _ => "no summary".to_owned(),
    }
}

/// The last line of `fencepost --message-format json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub errors: u64,
    pub others: u64,
    pub states: Option<u64>,
}

impl Summary {
    /// From JSON Lines; the target's own output may be among them.
    pub fn parse(text: &str) -> Option<Summary> {
        let last = &text[text.rfind("{\"type\":\"summary\"")?..];
        let (findings, errors) = (number(last, "findings")?, number(last, "error")?);
        Some(Summary { errors, others: findings.saturating_sub(errors), states: number(last, "states_decided") })
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.errors, self.others) {
            (0, 0) => write!(f, "nothing"),
            (1, 0) => write!(f, "1 error"),
            (errors, 0) => write!(f, "{errors} errors"),
            (0, others) => write!(f, "{others} remarks"),
            (errors, others) => write!(f, "{errors} error{}, {others} remarks", if errors == 1 { "" } else { "s" }),
        }?;
        self.states.map_or(Ok(()), |states| write!(f, " in {states} crash states"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_read_and_told() {
        let lint =
            "$ {\"type\":\"summary\",\"version\":1,\"findings\":18,\"error\":1,\"performance\":13,\"events\":9}\n";
        assert_eq!(Summary::parse(lint).map(|s| s.to_string()).as_deref(), Some("1 error, 17 remarks"));
        let check = "{\"type\":\"summary\",\"findings\":0,\"error\":0,\"states_decided\":256}";
        assert_eq!(Summary::parse(check).map(|s| s.to_string()).as_deref(), Some("nothing in 256 crash states"));
        assert_eq!(Summary::parse("no JSON"), None);
    }

    #[test]
    fn memcheck_is_read() {
        assert_eq!(memcheck("==1== ERROR SUMMARY: 0 errors from 0 contexts"), "nothing");
        assert_eq!(memcheck("==1== ERROR SUMMARY: 7 errors from 2 contexts"), "7 errors in 2 contexts");
        assert_eq!(
            memcheck("vex amd64->IR: unhandled instruction bytes: 0x66\nERROR SUMMARY: 0 errors"),
            "cannot run it (unhandled instruction)"
        );
    }
}
