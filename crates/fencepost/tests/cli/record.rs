//! `fencepost record` and `fencepost trace` with a real target: how recordings end, well or badly.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::cli_support::deny::Denied;
use crate::cli_support::{Ran, Sandbox, pool_program};

fn record(sandbox: &Sandbox, options: &[&str], act: &str) -> Ran {
    sandbox.command(&record_line(options, act)).output().expect("fencepost starts").into()
}

fn record_line<'a>(options: &[&'a str], act: &'a str) -> Vec<&'a str> {
    let mut line = vec!["record"];
    line.extend(options);
    line.extend(["--", pool_program().to_str().expect("text"), act, "pool"]);
    line
}

#[test]
fn a_recording_is_summarised_and_can_be_read() {
    let sandbox = Sandbox::new();
    let ran = record(&sandbox, &[], "store");
    ran.expect(0, &["exited with 5", "pool ", "/pool", "fencepost.fptrace"]);
    assert_eq!(ran.out, "stored\n");
    assert!(!sandbox.path("fencepost.fptrace.partial").exists());

    let stat = sandbox.run(&["trace", "stat", "--message-format", "json", "fencepost.fptrace"]);
    assert_eq!(stat.code, Some(0), "{}", stat.err);
    let stat: serde_json::Value = serde_json::from_str(&stat.out).expect("JSON");
    assert_eq!((&stat["stores"], &stat["flushes"], &stat["fences"]), (&1.into(), &1.into(), &1.into()));
    assert_eq!((&stat["pools"], &stat["threads"], &stat["complete"]), (&1.into(), &1.into(), &true.into()));
    assert_eq!(stat["instructions_seen"], serde_json::json!(["clflush", "mov", "sfence"]));

    let verify = sandbox.run(&["trace", "verify", "fencepost.fptrace"]);
    assert_eq!(verify.code, Some(0), "{}{}", verify.out, verify.err);
    assert!(verify.out.contains("0 differing bytes"), "{}", verify.out);

    let dump = sandbox.run(&["trace", "dump", "--symbols", "fencepost.fptrace"]);
    assert!(dump.out.contains("main"), "{}", dump.out);
}

#[test]
fn quiet_and_exit_with_target_leave_only_the_target_to_be_seen() {
    let sandbox = Sandbox::new();
    let ran = record(&sandbox, &["--quiet", "--exit-with-target"], "store");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(5), "stored\n", ""));
    let crashed = sandbox.command(&record_line(&["--quiet", "--exit-with-target"], "crash")).status();
    assert_eq!(crashed.expect("fencepost starts").signal(), Some(libc::SIGSEGV));
}

#[test]
fn no_activity_has_its_own_exit_code_and_an_explanation() {
    let sandbox = Sandbox::new();
    sandbox.run(&["record", "--", "/bin/true"]).golden("no-pool");
    record(&sandbox, &["--pm", "*.other"], "store").golden("no-pool-of-that-name");
    record(&sandbox, &[], "nothing").golden("nothing-written");
}

#[test]
fn a_target_killed_by_a_signal_is_said_and_the_trace_is_whole() {
    let sandbox = Sandbox::new();
    record(&sandbox, &[], "crash").golden("target-killed-by-a-signal");
    assert_eq!(sandbox.run(&["trace", "verify", "fencepost.fptrace"]).code, Some(0));
}

#[test]
fn a_full_disk_ends_the_recording() {
    let sandbox = Sandbox::new();
    for act in ["much", "store"] {
        let ran = record(&sandbox, &["-o", "/dev/full"], act);
        // Whether it is noticed while events come or at the end is chance.
        Ran { err: ran.err.replace("the recording cannot go on: ", ""), ..ran }.golden("disk-full-while-recording");
    }
}

/// The programs of `targets/conformance` that the engine refuses, and that the help's other way records.
#[test]
fn what_the_engine_does_not_do() {
    let refused = [
        ("address/straddle", "store-half-in-a-pool"),
        ("code/jit_in_pm", "code-in-a-pool"),
        ("isa/enter_nested", "nested-enter"),
    ];
    let mut names = Vec::new();
    for program in targets::conformance_programs().expect("the suite") {
        let Some(_) = program.refusal() else { continue };
        let golden = refused.iter().find(|(name, _)| *name == program.name).expect("a golden file for every refusal").1;
        let sandbox = Sandbox::new();
        let executable = program.build(&sandbox.path("built")).expect("it builds");
        sandbox.run(&["record", "--", executable.to_str().expect("text"), "pool"]).golden(golden);
        names.push(golden);
    }
    assert_eq!(names.len(), refused.len());
}

#[test]
fn a_pool_that_cannot_be_read() {
    const BYTES: u32 = 1 << 20;
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("pool"), vec![1; BYTES as usize]).expect("writable");
    let recorded_by = |backend: &str| -> Ran {
        let mut command = sandbox.command(&record_line(&["--backend", backend], "store"));
        Denied { call: libc::SYS_pread64, argument: 2, mask: !0, value: BYTES, error: libc::EIO }.bind(&mut command);
        command.output().expect("fencepost starts").into()
    };
    recorded_by("probe").golden("pool-unreadable");
    recorded_by("step").expect(3, &["cannot read the content of pool"]);
}

#[test]
fn verify_compares_with_the_pool_as_it_was_at_the_end() {
    let sandbox = Sandbox::new();
    record(&sandbox, &[], "store").expect(0, &[]);
    // What happens to the file after the recording is no concern of the trace.
    let pool = fs::OpenOptions::new().write(true).open(sandbox.path("pool")).expect("made by the target");
    pool.write_all_at(b"changed later", 4096).expect("writable");
    assert_eq!(sandbox.run(&["trace", "verify", "fencepost.fptrace"]).code, Some(0));
}

#[test]
fn damaged_cut_and_newer_traces_are_told_apart() {
    let sandbox = Sandbox::new();
    record(&sandbox, &["-o", "good"], "store").expect(0, &[]);
    let good = fs::read(sandbox.path("good")).expect("recorded");

    fs::write(sandbox.path("cut"), &good[..good.len() - 7]).expect("writable");
    let cut = sandbox.run(&["trace", "stat", "cut"]);
    cut.golden("cut-trace");
    sandbox.run(&["trace", "verify", "cut"]).golden("cut-trace-verified");
    // Another byte in every block of the middle.
    let mut damaged = good.clone();
    damaged.iter_mut().skip(good.len() / 4).step_by(16).for_each(|byte| *byte ^= 0x55);
    fs::write(sandbox.path("damaged"), damaged).expect("writable");
    for (command, name) in [("stat", "damaged-trace"), ("verify", "damaged-trace-verified")] {
        sandbox.run(&["trace", command, "damaged"]).golden(name);
    }
    sandbox.run(&["crash", "damaged"]).golden("damaged-trace-crashed");
    sandbox.run(&["lint", "damaged"]).golden("damaged-trace-linted");
    sandbox.run(&["crash", "--no-journal", "--exit-ok", "5", "cut"]).golden("cut-trace-crashed");

    let mut newer = good.clone();
    let version = trace_version_at(&good);
    newer[version] = 0xff;
    fs::write(sandbox.path("newer"), newer).expect("writable");
    sandbox.run(&["trace", "stat", "newer"]).golden("newer-trace");
}

/// The version follows the magic in the header.
fn trace_version_at(trace: &[u8]) -> usize {
    let head = &trace[..16];
    head.chunks(4)
        .position(|word| (1..32).contains(&word[0]) && word[1..] == [0, 0, 0])
        .expect("the version in the header")
        * 4
}

/// A recording whose target has its pool mapped and waits.
fn waiting(sandbox: &Sandbox) -> Child {
    let mut child = sandbox
        .command(&record_line(&[], "wait"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("fencepost starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("readable");
    assert_eq!(line, "ready\n");
    child
}

/// Waits until nobody holds the lock that the target takes: until it has ended.
fn wait_for_end_of_target(pool: &Path) {
    let file = File::options().write(true).open(pool).expect("made by the target");
    // SAFETY: a zeroed `flock` is valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as i16;
    // SAFETY: a live descriptor and structure.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLKW, &raw const lock) }, 0);
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: plain system call; the child has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

#[test]
fn an_interrupt_ends_the_target_and_keeps_the_trace() {
    for (number, name) in [(libc::SIGINT, "recording-interrupted"), (libc::SIGTERM, "recording-terminated")] {
        let sandbox = Sandbox::new();
        let mut child = waiting(&sandbox);
        signal(&child, number);
        let mut err = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
        let status = child.wait().expect("waited");
        Ran { code: status.code(), out: String::new(), err }.golden(name);
        wait_for_end_of_target(&sandbox.path("pool"));
        assert_eq!(sandbox.run(&["trace", "verify", "fencepost.fptrace"]).code, Some(0));
    }
}

#[test]
fn when_fencepost_is_killed_the_target_ends_and_no_trace_passes_for_whole() {
    let sandbox = Sandbox::new();
    let mut child = waiting(&sandbox);
    signal(&child, libc::SIGKILL);
    child.wait().expect("waited");
    wait_for_end_of_target(&sandbox.path("pool"));
    assert!(!sandbox.path("fencepost.fptrace").exists());
    assert_ne!(sandbox.run(&["trace", "verify", "fencepost.fptrace.partial"]).code, Some(0));
}

#[test]
fn follow_first_kills_what_outlives_the_program() {
    let sandbox = Sandbox::new();
    let pool = pool_program().to_str().expect("text");
    // The shell ends when the other process is up and holds its lock.
    let script = format!("mkfifo up; {pool} wait pool > up & read line < up; exit 6");
    let ran = sandbox.run(&["record", "--follow", "first", "--", "/bin/sh", "-c", &script]);
    ran.expect(0, &["exited with 6"]);
    wait_for_end_of_target(&sandbox.path("pool"));
    assert_eq!(sandbox.run(&["trace", "verify", "fencepost.fptrace"]).code, Some(0));
}
