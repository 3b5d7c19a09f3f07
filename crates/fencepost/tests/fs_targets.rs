//! `fencepost fs check` finds the seeded bugs of `targets/fs` that its source says `targets/fs/bugs.ops` finds, with its class and at
//! a guilty line, and nothing in the correct twin.
//!
//! One test per variant: `cargo test --release -p fencepost --test fs_targets -- bug-3`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use targets::fs::{Bug, bugs, build};

/// Enough for the slowest variant on a busy machine.
const TIME_LIMIT_SECONDS: &str = "900";
/// A few workloads that find the bugs; the whole of seq-1 for each would take long.
const WORKLOADS: [&str; 2] = ["--ops", concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/fs/bugs.ops")];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let bugs = match bugs() {
        Ok(bugs) => bugs,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials = vec![
        Trial::test("twin-seq-1", || check_twin("seq-1", &["--ace", "seq-1"])),
        Trial::test("twin-bugs", || check_twin("bugs", &WORKLOADS)),
    ];
    let bugs = bugs.into_iter().filter(|bug| bug.found_by == "bugs.ops");
    trials.extend(bugs.map(|bug| Trial::test(format!("bug-{}", bug.variant), move || check_bug(&bug))));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn space() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("fs-targets")
}

/// The findings, and the summary.
fn check(variant: u32, purpose: &str, workloads: &[&str]) -> Result<(Vec<Value>, Value), Failed> {
    let program = build(&space().join("built"), variant)?;
    let folder = space().join(format!("{variant}-{purpose}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let output = Command::new("timeout")
        .args([TIME_LIMIT_SECONDS, env!("CARGO_BIN_EXE_fencepost")])
        .args(["fs", "check", "--message-format", "json", "--progress", "never"])
        .args(["--mkfs", &format!("{} --mkfs {{pool}}", program.display())])
        .args(["--fuse", &format!("{} {{pool}} -f -s {{mount}}", program.display())])
        .args(workloads)
        .current_dir(&folder)
        .output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!("fs check: {}\n{out}\n{err}", output.status).into());
    }
    let mut lines = out.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let summary = lines.pop().ok_or("no summary")?;
    let _ = std::fs::remove_dir_all(&folder);
    Ok((lines, summary))
}

fn check_twin(purpose: &str, workloads: &[&str]) -> Result<(), Failed> {
    let (findings, summary) = check(0, purpose, workloads)?;
    if !findings.is_empty() {
        return Err(format!("the correct twin has findings: {findings:#?}").into());
    }
    let number = |name: &str| summary[name].as_u64().unwrap_or(0);
    if number("states_decided") == 0 || number("points_decided") != number("points_wanted") {
        return Err(format!("not everything was decided: {summary:#}").into());
    }
    Ok(())
}

fn check_bug(bug: &Bug) -> Result<(), Failed> {
    // A daemon that hangs takes its time.
    let workloads = [&WORKLOADS[..], &["--budget", "60s"]].concat();
    let (findings, summary) = check(bug.variant, "bug", &workloads)?;
    let text = |finding: &Value| finding.to_string();
    let blamed = |(file, line, _): &(String, u32, String)| {
        let place = format!("\"line\":{line}");
        findings.iter().any(|finding| text(finding).contains(file.as_str()) && text(finding).contains(&place))
    };
    if bug.guilty.iter().any(blamed) {
        return Ok(());
    }
    Err(format!("bug {} ({}) is not found at its line:\n{findings:#?}\n{summary:#}", bug.variant, bug.what).into())
}
