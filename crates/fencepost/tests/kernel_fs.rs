//! `fencepost fs check --kernel` for real: QEMU, Debian's kernel, our own file system as a module (`targets/fs/kmod`), and ext4 with DAX.
//! Every run boots guests, so only a few of the seeded bugs are tried every time; the others:
//! `cargo test --release -p fencepost --test kernel_fs -- --ignored`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

const FENCEPOST: &str = env!("CARGO_BIN_EXE_fencepost");
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/fs/kmod");
/// Which bugs are tried every time.
const QUICK: [u32; 2] = [2, 8];
/// Enough for the slowest on a busy machine.
const TIME_LIMIT_SECONDS: &str = "900";

/// A seeded bug, as the head of the module's source says.
struct Bug {
    variant: u32,
    what: String,
    function: String,
}

fn bugs() -> Vec<Bug> {
    let text = fs::read_to_string(Path::new(SOURCE).join("stonefs.c")).expect("the module's source");
    let lines = text.lines().filter_map(|line| line.strip_prefix(" * bug "));
    let bug = |line: &str| {
        let (number, rest) = line.split_once(": ")?;
        let (what, function) = rest.split_once("; in ")?;
        Some(Bug { variant: number.parse().ok()?, what: what.to_owned(), function: function.to_owned() })
    };
    lines.map(|line| bug(line).expect("`bug N: WHAT; in FUNCTION`")).collect()
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = vec![Trial::test("twin", twin), Trial::test("ext4", ext4)];
    for bug in bugs() {
        let quick = QUICK.contains(&bug.variant);
        trials.push(Trial::test(format!("bug-{}", bug.variant), move || found(&bug)).with_ignored_flag(!quick));
    }
    // Guests are large and have processors of their own.
    libtest_mimic::run(&Arguments { test_threads: Some(1), ..arguments }, trials).exit_code()
}

fn space() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel-fs")
}

struct Laboratory {
    kernel: String,
    modules: String,
    module: PathBuf,
}

/// A kernel, and the module built for it; made once.
fn laboratory() -> Result<&'static Laboratory, Failed> {
    static MADE: OnceLock<Result<Laboratory, String>> = OnceLock::new();
    MADE.get_or_init(make).as_ref().map_err(|error| error.clone().into())
}

fn make() -> Result<Laboratory, String> {
    let to = space().join("kernel");
    fs::create_dir_all(space()).map_err(|error| error.to_string())?;
    let said = run(Command::new(FENCEPOST).args(["fs", "kernel", "--to"]).arg(&to))?;
    let mut lines = said.lines().map(str::to_owned);
    let (kernel, modules) = lines.next().zip(lines.next()).ok_or("`fs kernel` names no kernel")?;
    let version = Path::new(&modules).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let headers = format!("/usr/src/linux-headers-{version}");
    if !Path::new(&headers).exists() {
        return Err(format!("{headers} is not there; install linux-headers-cloud-amd64 of the same version"));
    }
    let built = space().join("kmod");
    fs::create_dir_all(&built).map_err(|error| error.to_string())?;
    for name in ["Makefile", "stonefs.c"] {
        fs::copy(Path::new(SOURCE).join(name), built.join(name)).map_err(|error| error.to_string())?;
    }
    run(Command::new("make").arg("-C").arg(&built).arg(format!("KDIR={headers}")))?;
    Ok(Laboratory { kernel, modules, module: built.join("stonefs.ko") })
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// The findings, and the summary.
fn check(name: &str, words: &[&str]) -> Result<(Vec<Value>, Value), Failed> {
    let Laboratory { kernel, modules, .. } = laboratory()?;
    let folder = space().join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let output = Command::new("timeout")
        .args([TIME_LIMIT_SECONDS, FENCEPOST, "fs", "check", "--message-format", "json", "--progress", "never"])
        .args(["--kernel", kernel, "--modules", modules])
        .args(words)
        .current_dir(&folder)
        .output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!("fs check: {}\n{out}\n{err}", output.status).into());
    }
    let mut lines = out.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let summary = lines.pop().ok_or("no summary")?;
    Ok((lines, summary))
}

fn stonefs(name: &str, bug: u32, budget: &str) -> Result<(Vec<Value>, Value), Failed> {
    let module = format!("{} bug={bug}", laboratory()?.module.display());
    let ops = format!("{SOURCE}/bugs.ops");
    check(name, &["--fs", "stonefs", "--module", &module, "--size", "8", "--ops", &ops, "--budget", budget])
}

fn twin() -> Result<(), Failed> {
    let (findings, summary) = stonefs("twin", 0, "60s")?;
    if !findings.is_empty() {
        return Err(format!("the correct twin has findings: {findings:#?}").into());
    }
    if summary["states_decided"].as_u64().unwrap_or(0) == 0 {
        return Err(format!("nothing was decided: {summary:#}").into());
    }
    Ok(())
}

fn found(bug: &Bug) -> Result<(), Failed> {
    // After a panic the guest is booted anew.
    let budget = if QUICK.contains(&bug.variant) { "120s" } else { "600s" };
    let (findings, summary) = stonefs(&format!("bug-{}", bug.variant), bug.variant, budget)?;
    let blames = |finding: &Value| finding.to_string().contains(&format!("\"function\":\"{}\"", bug.function));
    if findings.iter().any(blames) {
        return Ok(());
    }
    Err(format!("bug {} ({}) is not found in {}:\n{findings:#?}\n{summary:#}", bug.variant, bug.what, bug.function)
        .into())
}

/// A file system of Debian's own, which is right.
fn ext4() -> Result<(), Failed> {
    let ops = space().join("ext4.ops");
    laboratory()?;
    fs::write(&ops, "workload one\ncreat foo\nwrite foo 0 3000 seed=1\ncrash fsync foo\ncrash rename foo bar\n")?;
    let strategy = "program-order,guaranteed-only";
    let words = ["--fs", "ext4", "--mkfs", "mkfs.ext4 -q -b 4096 {device}", "--needs-fsync", "--strategy", strategy];
    let (findings, summary) = check("ext4", &[&words[..], &["--ops", &ops.display().to_string()]].concat())?;
    if !findings.is_empty() || summary["states_decided"].as_u64().unwrap_or(0) == 0 {
        return Err(format!("{findings:#?}\n{summary:#}").into());
    }
    Ok(())
}
