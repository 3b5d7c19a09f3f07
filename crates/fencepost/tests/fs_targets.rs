//! `fencepost fs check` finds the seeded bugs of `targets/fs` that its source says `targets/fs/bugs.ops` finds, with its class and at
//! a guilty line, and nothing in the correct twin. Findings can be replayed and debugged, random workloads find and shorten, and a
//! library that intercepts system calls is checked the same way.
//!
//! One test per variant: `cargo test --release -p fencepost --test fs_targets -- bug-3`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use targets::checks_at_once;
use targets::fs::{Bug, LAZY, bugs, build, build_preload, preload_lines};

/// Enough for the slowest variant on a busy machine.
const TIME_LIMIT_SECONDS: &str = "900";
/// A few workloads that find the bugs; the whole of seq-1 for each would take long.
const WORKLOADS: [&str; 2] = ["--ops", concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/fs/bugs.ops")];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(checks_at_once());
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
    trials.push(Trial::test("replay", replay));
    trials.push(Trial::test("replay-batches", replay_batches));
    trials.push(Trial::test("debug", debug));
    trials.push(Trial::test("fuzz", fuzz));
    trials.push(Trial::test("fuzz-known", fuzz_known));
    trials.push(Trial::test("twin-lazy", || check_variant(LAZY, "lazy", &FSYNC)));
    for variant in 0..=2 {
        trials.push(Trial::test(format!("preload-{variant}"), move || check_preload(variant)));
    }
    trials.extend(bugs.into_iter().map(|bug| Trial::test(format!("bug-{}", bug.variant), move || check_bug(&bug))));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn space() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("fs-targets")
}

/// A few workloads with persistence points.
const FSYNC: [&str; 3] = ["--needs-fsync", "--ops", concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/fs/fsync.ops")];

/// A folder of its own for a run.
fn folder(name: &str) -> Result<PathBuf, Failed> {
    let folder = space().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn fencepost(folder: &Path, words: &[&str]) -> Result<(Option<i32>, String), Failed> {
    let output = Command::new("timeout")
        .args([TIME_LIMIT_SECONDS, env!("CARGO_BIN_EXE_fencepost")])
        .args(words)
        .current_dir(folder)
        .output()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok((output.status.code(), text))
}

/// A check whose bundles stay, and the id of its only finding.
fn found(folder: &Path, variant: u32, workloads: &[&str]) -> Result<(String, String), Failed> {
    let program = build(&space().join("built"), variant)?;
    let (mkfs, daemon) =
        (format!("{} --mkfs {{pool}}", program.display()), format!("{} {{pool}} -f -s {{mount}}", program.display()));
    let words = ["fs", "check", "--progress", "never", "--html", "report.html", "--mkfs", &mkfs, "--fuse", &daemon];
    let (code, text) = fencepost(folder, &[&words[..], workloads].concat())?;
    if code != Some(1) {
        return Err(format!("nothing found: {text}").into());
    }
    let id = text.split("; finding ").nth(1).and_then(|rest| rest.split(';').next());
    let id = id.ok_or_else(|| format!("no finding in {text}"))?.to_owned();
    Ok((id, text))
}

fn operations(folder: &Path, text: &str) -> Result<String, Failed> {
    let file = folder.join("operations");
    std::fs::write(&file, text)?;
    Ok(file.display().to_string())
}

fn expect(text: &str, parts: &[&str]) -> Result<(), Failed> {
    match parts.iter().find(|part| !text.contains(*part)) {
        Some(part) => Err(format!("`{part}` is not in: {text}").into()),
        None => Ok(()),
    }
}

/// The same bug in two batches is told once, as the first shows it, and replayed as it is told.
fn replay_batches() -> Result<(), Failed> {
    let folder = folder("replay-batches")?;
    let text = "workload one\ncreat foo\ncrash rename foo bar\nworkload two\nmkdir A\ncreat A/more\ncrash rename A/more A/bar\n";
    let operations = operations(&folder, text)?;
    let (id, text) = found(&folder, 3, &["--ops", &operations, "--batch", "1"])?;
    expect(&text, &["after `rename foo bar` neither name is there", "1 error in"])?;
    let (_, text) = fencepost(&folder, &["replay", &id])?;
    expect(&text, &["reproduced: after `rename foo bar` neither name is there"])
}

/// A rename that loses both names: the report shows the trees, and a replay on the uninstrumented daemon finds it again, elsewhere than
/// where it was found.
fn replay() -> Result<(), Failed> {
    let folder = folder("replay")?;
    let operations = operations(&folder, "creat foo\ncrash rename foo bar\n")?;
    let (id, text) = found(&folder, 3, &["--ops", &operations])?;
    expect(
        &text,
        &["neither name is there", "tree before: file foo mode=", "tree after: file bar mode=", "tree found: nothing"],
    )?;
    expect(&std::fs::read_to_string(folder.join("report.html"))?, &["class=\"states trees\"", "file bar mode="])?;
    let (code, text) = fencepost(&folder, &["replay", &id])?;
    if code != Some(1) {
        return Err(format!("not reproduced: {text}").into());
    }
    expect(&text, &["reproduced: after `rename foo bar` neither name is there", "dir . mode="])
}

/// A recovery that aborts stands in the debugger where it does.
fn debug() -> Result<(), Failed> {
    let folder = folder("debug")?;
    let operations = operations(&folder, "creat foo\ncrash unlink foo\n")?;
    let (id, _) = found(&folder, 10, &["--ops", &operations])?;
    let (_, text) =
        fencepost(&folder, &["debug", &id, "--", "-batch", "-ex", "continue", "-ex", "continue", "-ex", "backtrace"])?;
    expect(&text, &["SIGABRT", "recover ("])
}

/// Random workloads find the file that has no block, and what is left of the workload still shows it.
fn fuzz() -> Result<(), Failed> {
    let folder = folder("fuzz")?;
    let (id, text) = found(
        &folder,
        18,
        &["--fuzz", "60", "--batch", "60", "--seed", "1", "--strategy", "program-order,guaranteed-only"],
    )?;
    expect(&text, &["operations show it", "of them reached new code of the file system"])?;
    let file = folder.join(".fencepost").join(&id).join("workload.ops");
    let shortest = std::fs::read_to_string(&file)?;
    if shortest.lines().count() > 8 {
        return Err(format!("not short: {shortest}").into());
    }
    let again = self::folder("fuzz-again")?;
    let (same, _) = found(&again, 18, &["--ops", &file.display().to_string()])?;
    if same == id { Ok(()) } else { Err(format!("{shortest} finds {same}, not {id}").into()) }
}

/// What the first batch of random workloads finds does not fail again in the second.
fn fuzz_known() -> Result<(), Failed> {
    let failing = |count: &str| -> Result<(usize, u64, u64), Failed> {
        let words = ["--fuzz", count, "--batch", "20", "--seed", "1", "--strategy", "program-order,guaranteed-only"];
        let (findings, summary) = check(18, &format!("known-{count}"), &words)?;
        let number = |name: &str| summary[name].as_u64().unwrap_or(0);
        Ok((findings.len(), number("states_failing"), number("points_wanted")))
    };
    let (one, two) = (failing("20")?, failing("40")?);
    let is_right = one.0 == 1 && one.1 > 0 && (two.0, two.1) == (one.0, one.1) && two.2 > one.2;
    if is_right { Ok(()) } else { Err(format!("findings, failing states, crash points: {one:?}, then {two:?}").into()) }
}

fn check_preload(variant: u32) -> Result<(), Failed> {
    let library = build_preload(&space().join("built"), variant)?;
    let folder = folder(&format!("preload-{variant}"))?;
    let operations = operations(
        &folder,
        "creat foo\nwrite foo 0 300 seed=1\ncrash write foo 100 700 seed=2\ncreat bar\ncrash write bar 0 200 seed=3\ncrash rename foo baz\n",
    )?;
    let words =
        ["fs", "check", "--progress", "never", "--message-format", "json", "--atomic-writes", "--ops", &operations];
    let preload =
        ["--preload", &library.display().to_string(), "--env", "REDOLOG_POOL={pool}", "--env", "REDOLOG_ROOT={mount}"]
            .map(str::to_owned);
    let preload: Vec<&str> = preload.iter().map(String::as_str).collect();
    let (code, text) = fencepost(&folder, &[&words[..], &preload].concat())?;
    let lines = preload_lines(variant)?;
    let blamed = lines.iter().any(|line| text.contains(&format!("\"line\":{line},")));
    match (variant, code) {
        (0, Some(0)) => expect(&text, &["\"findings\":0"]),
        (1.., Some(1)) if blamed => Ok(()),
        _ => Err(format!("exit {code:?}: {text}").into()),
    }
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
    check_variant(0, purpose, workloads)
}

/// A correct one.
fn check_variant(variant: u32, purpose: &str, workloads: &[&str]) -> Result<(), Failed> {
    let (findings, summary) = check(variant, purpose, workloads)?;
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
    let workloads: &[&str] = if bug.found_by == "fsync" { &FSYNC } else { &WORKLOADS };
    let workloads = [workloads, &["--budget", "60s"]].concat();
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
