//! `fencepost fs check --kernel` for real: QEMU, Debian's kernel, our own file system as a module (`targets/fs/kmod`), and ext4 with DAX.
//! Every run boots guests, so only two of the seeded bugs are tried every time; the others:
//! `cargo test --release -p fencepost --test kernel_fs -- --ignored`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use targets::kmod::{Bug, bugs, build, workloads};

const FENCEPOST: &str = env!("CARGO_BIN_EXE_fencepost");
/// Which bug is tried every time with all workloads.
const QUICK: u32 = 2;
/// This one is tried every time with one workload that shows it.
const DEBUGGED: u32 = 8;
const DEBUGGED_OPS: &str = "workload one\ncreat foo\nwrite foo 0 6000 seed=4\ncrash truncate foo 100\n";
/// Enough for the slowest on a busy machine.
const TIME_LIMIT_SECONDS: &str = "900";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = vec![
        Trial::test("twin", twin),
        Trial::test("ext4", ext4),
        Trial::test("replay-and-debug", debug),
        Trial::test("coverage", coverage),
        Trial::test("eadr", eadr),
        Trial::test("what-is-missing", what_is_missing),
    ];
    for bug in bugs().expect("the module's source") {
        let quick = bug.variant == QUICK;
        trials.push(Trial::test(format!("bug-{}", bug.variant), move || found(&bug)).with_ignored_flag(!quick));
    }
    // Guests are large; booting one takes a single processor.
    libtest_mimic::run(&Arguments { test_threads: Some(2), ..arguments }, trials).exit_code()
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
    let module = build(&space().join("kmod"), Path::new(&headers)).map_err(|error| error.to_string())?;
    Ok(Laboratory { kernel, modules, module })
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
    let ops = workloads().display().to_string();
    let words = ["--fs", "stonefs", "--module", &module, "--size", "8", "--ops", &ops, "--budget", budget];
    check(name, &[&words[..], &["--trace", "kept.fptrace"]].concat())
}

fn twin() -> Result<(), Failed> {
    let (findings, summary) = stonefs("twin", 0, "30s")?;
    if !findings.is_empty() {
        return Err(format!("the correct twin has findings: {findings:#?}").into());
    }
    if summary["states_decided"].as_u64().unwrap_or(0) == 0 {
        return Err(format!("nothing was decided: {summary:#}").into());
    }
    // The trace explains the final image byte for byte, and names kernel functions with their lines.
    let folder = space().join("twin");
    run(Command::new(FENCEPOST).args(["trace", "verify", "kept.fptrace"]).current_dir(&folder))?;
    let dump = run(Command::new(FENCEPOST)
        .args(["trace", "dump", "--symbols", "--call-paths", "kept.fptrace"])
        .current_dir(&folder))?;
    for wanted in ["tx_commit", "stonefs.c:", "__x64_sys_mkdir"] {
        if !dump.contains(wanted) {
            return Err(format!("the trace names no {wanted}").into());
        }
    }
    Ok(())
}

fn found(bug: &Bug) -> Result<(), Failed> {
    // After a panic the guest is booted anew.
    let budget = if bug.variant == QUICK { "120s" } else { "600s" };
    let (findings, summary) = stonefs(&format!("bug-{}", bug.variant), bug.variant, budget)?;
    is_among(&findings, bug).map_err(|why| format!("{why}:\n{findings:#?}\n{summary:#}").into())
}

/// The bug's function is blamed, and a finding names the source with the line: the module has debug information.
fn is_among(findings: &[Value], bug: &Bug) -> Result<(), String> {
    let texts: Vec<String> = findings.iter().map(Value::to_string).collect();
    if !texts.iter().any(|text| bug.is_named_in(text)) {
        return Err(format!("bug {} ({}) is not found in {}", bug.variant, bug.what, bug.functions.join(" or ")));
    }
    match texts.iter().any(|text| text.contains("stonefs.c") && text.contains("\"line\":")) {
        true => Ok(()),
        false => Err("no finding names a line".to_owned()),
    }
}

/// A bug is found by one workload; its finding again, in a fresh guest; and gdb on that guest, which has stopped before it mounts.
fn debug() -> Result<(), Failed> {
    let bug = bugs()?.into_iter().find(|bug| bug.variant == DEBUGGED).ok_or("no bug to debug")?;
    let module = format!("{} bug={DEBUGGED}", laboratory()?.module.display());
    let ops = space().join("debug.ops");
    fs::write(&ops, DEBUGGED_OPS)?;
    let ops = ops.display().to_string();
    let (findings, _) = check("debug", &["--fs", "stonefs", "--module", &module, "--size", "8", "--ops", &ops])?;
    is_among(&findings, &bug)?;
    let id = findings.first().and_then(|finding| finding["id"].as_str()).ok_or("no finding to debug")?;
    let replay = Command::new("timeout")
        .args([TIME_LIMIT_SECONDS, FENCEPOST, "replay", id])
        .current_dir(space().join("debug"))
        .output()?;
    let said = String::from_utf8_lossy(&replay.stderr);
    if replay.status.code() != Some(1) || !said.contains("reproduced: ") {
        return Err(format!("replay: {}: {said}", replay.status).into());
    }
    let said = run(Command::new("timeout")
        .args([TIME_LIMIT_SECONDS, FENCEPOST, "debug", id, "--", "-batch"])
        .args(["-ex", "backtrace 1", "-ex", "break stone_fill", "-ex", "continue", "-ex", "backtrace 1"])
        .current_dir(space().join("debug")))?;
    for wanted in ["__x64_sys_mount", "stone_fill", "stonefs.c:"] {
        if !said.contains(wanted) {
            return Err(format!("gdb says nothing of {wanted}:\n{said}").into());
        }
    }
    Ok(())
}

/// Where the caches survive a power failure, a store that is never flushed is no bug.
fn eadr() -> Result<(), Failed> {
    let module = format!("{} bug={DEBUGGED}", laboratory()?.module.display());
    let ops = space().join("eadr.ops");
    fs::write(&ops, DEBUGGED_OPS)?;
    let words = ["--fs", "stonefs", "--module", &module, "--size", "8", "--model", "eadr", "--ops"];
    let (findings, summary) = check("eadr", &[&words[..], &[&ops.display().to_string()]].concat())?;
    if !findings.is_empty() || summary["states_decided"].as_u64().unwrap_or(0) == 0 {
        return Err(format!("{findings:#?}\n{summary:#}").into());
    }
    Ok(())
}

/// Random workloads are kept by the edges of the module's code that they reach.
fn coverage() -> Result<(), Failed> {
    let Laboratory { kernel, modules, module } = laboratory()?;
    let output = Command::new("timeout")
        .args([TIME_LIMIT_SECONDS, FENCEPOST, "fs", "check", "--progress", "never", "--kernel", kernel])
        .args(["--modules", modules, "--fs", "stonefs", "--size", "8", "--fuzz", "6", "--length", "4", "--module"])
        .arg(module)
        .args(["--strategy", "program-order", "--budget", "60s"])
        .current_dir(space())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let note = said.lines().find(|line| line.contains("edges of its code")).unwrap_or_default();
    let edges = note.split_once('(').and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok());
    if output.status.success() && edges.is_some_and(|edges| edges > 100) {
        return Ok(());
    }
    Err(format!("{}: {said}", output.status).into())
}

/// Every message says what is missing, in one line, before anything is checked.
fn what_is_missing() -> Result<(), Failed> {
    let Laboratory { kernel, modules, module } = laboratory()?;
    let folder = space().join("missing");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("none"))?;
    let write = |name: &str, content: &[u8]| -> Result<String, Failed> {
        let path = folder.join(name);
        fs::write(&path, content)?;
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        Ok(path.display().to_string())
    };
    let module = module.display().to_string();
    // Another version, of the same length.
    let version = Path::new(modules).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let other = fs::read(&module)?;
    let at = other.windows(9 + version.len()).position(|text| text == format!("vermagic={version}").as_bytes());
    let mut other = other;
    other[at.ok_or("the module has no vermagic")? + 9] = b'9';
    let other = write("stonefs.ko", &other)?;
    let old = write("qemu-old", b"#!/bin/sh\necho 'QEMU emulator version 7.2.15'\n")?;
    let text = write("vmlinuz", &[0; 4096])?;
    let none = folder.join("none").display().to_string();
    let right = ["--kernel", kernel, "--modules", modules];
    let cases: [(&[&str], &str); 8] = [
        (&["--kernel", kernel, "--modules", &none, "--fs", "stonefs", "--module", &module], "it has no support for PM"),
        (&["--kernel", kernel, "--fs", "ext4"], "the guest has no /dev/pmem0"),
        (&[&right[..], &["--fs", "novafs"]].concat(), "has no module `novafs`"),
        (&[&right[..], &["--fs", "novafs", "--module", "novafs.ko"]].concat(), "novafs.ko: No such file"),
        (&[&right[..], &["--fs", "stonefs", "--module", &other]].concat(), "was built for kernel 9"),
        (&[&right[..], &["--qemu", "/none/qemu"]].concat(), "`/none/qemu` is not found"),
        (&[&right[..], &["--qemu", &old]].concat(), "version 9.2 or later is needed"),
        (&["--kernel", &text, "--modules", modules], "is no Linux kernel image"),
    ];
    for (words, wanted) in cases {
        let mut command = Command::new(FENCEPOST);
        let output = command.args(["fs", "check"]).args(words).current_dir(&folder).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(2) || !said.contains(wanted) || said.trim().lines().count() != 1 {
            return Err(format!("{words:?}: {}; wanted `{wanted}`:\n{said}", output.status).into());
        }
    }
    // `doctor` knows before.
    fs::rename(&old, folder.join("qemu-system-x86_64"))?;
    let doctor = Command::new(FENCEPOST).arg("doctor").env("PATH", &folder).env("XDG_CACHE_HOME", &none).output()?;
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    for wanted in ["version 9.2 or later is needed", "`fencepost fs kernel` fetches one"] {
        if !said.contains(wanted) {
            return Err(format!("doctor does not say `{wanted}`:\n{said}").into());
        }
    }
    Ok(())
}

/// A file system of Debian's own, which is right.
fn ext4() -> Result<(), Failed> {
    let ops = space().join("ext4.ops");
    laboratory()?;
    fs::write(&ops, "workload one\ncreat foo\nwrite foo 0 3000 seed=1\ncrash fsync foo\ncrash rename foo bar\n")?;
    let words = ["--fs", "ext4", "--mkfs", "mkfs.ext4 -q -b 4096 {device}", "--needs-fsync"];
    let (findings, summary) = check("ext4", &[&words[..], &["--ops", &ops.display().to_string()]].concat())?;
    if !findings.is_empty() || summary["states_decided"].as_u64().unwrap_or(0) == 0 {
        return Err(format!("{findings:#?}\n{summary:#}").into());
    }
    Ok(())
}
