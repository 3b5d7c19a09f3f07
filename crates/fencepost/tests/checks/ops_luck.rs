//! Operations under bad luck: the user loses deadline, the machine runs out of room, processes are killed, and programs read
//! their standard input in unusual ways.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::crash_support::{Case, parse};

const OPERATIONS: &str = "put 1 11\nput 2 22\nget 1\nput 1 12\n";
const TAIL: &str = "get 1\nget 2\n";
/// How many these are.
const LINES: usize = 6;

/// `reader` with operations and a readback beside it.
fn case(flags: &[&str]) -> Case {
    let case = Case::of("reader", flags);
    fs::write(case.sandbox.path("ops"), OPERATIONS).expect("writable");
    fs::write(case.sandbox.path("readback"), TAIL).expect("writable");
    case
}

/// Records `reader` with its gate as `trace`.
fn record_held(case: &Case) {
    let mut record = case.sandbox.command(&["record", "--quiet", "--operations", "stdin", "-o", "trace", "--"]);
    record.args(["./reader", &case.pool, "held"]).arg(case.gate());
    let ran = record.stdin(fs::File::open(case.sandbox.path("ops")).expect("there")).output().expect("starts");
    assert!(ran.status.success());
}

/// Crashes that recording.
const HELD: &[&str] = &[
    "crash",
    "trace",
    "--no-journal",
    "--message-format",
    "json",
    "--jobs",
    "1",
    "--timeout",
    "100s",
    "--strategy",
    "program-order",
    "--ops",
    "ops",
    "--readback",
    "readback",
];

#[test]
fn an_interrupt_in_the_runs_without_a_crash() {
    let case = case(&[]);
    let gate = case.gate().display().to_string();
    let mut record = case.sandbox.command(&["record", "--quiet", "--operations", "stdin", "-o", "trace", "--"]);
    record
        .args(["./reader", &case.pool, "held", &gate])
        .stdin(fs::File::open(case.sandbox.path("ops")).expect("there"));
    assert!(record.output().expect("starts").status.success());
    let log = case.gate().with_extension("log");

    for number in [libc::SIGINT, libc::SIGTERM] {
        fs::remove_file(&log).expect("written by every run");
        case.close_gate();
        let mut interrupted = case.start(HELD);
        case.wait_for_gate(&mut interrupted);
        interrupted.signal_group(number);
        // It looks for signals many times a second; runs that are under way get a second and a half to end.
        thread::sleep(Duration::from_millis(500));
        case.open_gate();
        let interrupted = interrupted.end();
        interrupted.golden_note("interrupted-without-a-crash", "interrupted");
        let (findings, summary) = parse(&interrupted);
        assert_eq!((findings.len(), &summary["complete"], &summary["points_decided"]), (0, &false.into(), &0.into()));
        // The run that was under way ended; none was started after it.
        let run = fs::read_to_string(&log).expect("written");
        assert_eq!(run.lines().count(), LINES, "{run}");
        case.wait_until_forgotten();
        assert_eq!(case.slots_left(), Vec::<std::path::PathBuf>::new());
    }
}

/// `check` on `reader`, with operations, and the recording kept as `trace`.
fn check(case: &Case, way: &str) -> crate::cli_support::Ran {
    let _ = fs::remove_file(case.sandbox.path(&case.pool));
    let mut line =
        vec!["check", "--no-lint", "--jobs", "1", "--strategy", "program-order,guaranteed-only", "--ops", "ops"];
    line.extend(["--readback", "readback", "--output", "trace", "--", "./reader", &case.pool, way]);
    case.run(&line)
}

/// The boundaries of a recording, and the stores between them.
fn shape(case: &Case) -> String {
    let dump = case.run(&["trace", "dump", "trace"]).out;
    let names = [("operation-begin", '('), ("store", 's'), ("operation-end", ')')];
    let letter = |line: &str| names.iter().find(|(name, _)| line.split(' ').nth(2) == Some(name)).map(|(_, at)| *at);
    dump.lines().filter_map(letter).collect()
}

#[track_caller]
fn assert_read(ways: &[&str]) {
    let case = case(&[]);
    for way in ways {
        let ran = check(&case, way);
        assert_eq!(ran.code, Some(0), "{way}: {}{}", ran.out, ran.err);
        assert_eq!(shape(&case), "(s)(s)()(s)", "{way}");
    }
}

#[test]
fn operations_are_read_by_any_descriptor_of_standard_input() {
    assert_read(&["dup", "/dev/stdin", "/proc/self/fd/0", "reopened"]);
}

#[test]
fn operations_are_read_by_any_call_that_reads_on() {
    assert_read(&["bytes", "readv", "preadv2", "nonblocking", "poll", "select"]);
}

#[test]
fn operations_are_read_by_children() {
    assert_read(&["child", "children"]);
}

#[test]
fn operations_that_are_not_read_line_by_line() {
    let case = case(&[]);
    for way in ["closed", "recv", "pread", "mmap"] {
        check(&case, way).golden("input-not-read-line-by-line");
    }
    check(&case, "epoll").golden("input-that-cannot-be-waited-for");
    check(&case, "twice").golden("input-read-twice");
}

#[test]
fn a_run_without_a_crash_that_is_killed() {
    let case = case(&[]);
    record_held(&case);
    fs::write(case.gate().with_extension("kill"), "").expect("writable");
    case.run(HELD).golden("killed-without-a-crash");
}

#[test]
fn a_program_that_links_its_pool_is_compared_all_the_same() {
    let right = check(&case(&[]), "renames");
    right.expect(0, &["note: right answers come from runs that open the pools anew at each operation"]);
    let bug = check(&case(&["-DBUG"]), "renames");
    assert_eq!(bug.code, Some(1), "{}{}", bug.out, bug.err);
}

/// A stand-in of a pool that cannot grow kills the program that changes it: that is no failure of the program.
#[test]
fn no_room_for_pools() {
    let case = case(&[]);
    fs::create_dir(case.sandbox.path("small")).expect("writable");
    let full = |memory: &str, disk: &str| {
        let _ = fs::remove_file(case.sandbox.path(&case.pool));
        let mount = format!(
            "mount -t tmpfs -o size={memory} tmpfs /dev/shm && mount -t tmpfs -o size={disk} tmpfs small && exec \"$@\""
        );
        let mut line = vec!["check", "--no-lint", "--jobs", "1", "--strategy", "program-order", "--ops", "ops"];
        line.extend(["--readback", "readback", "--output", "trace", "--", "./reader", &case.pool, "bytes"]);
        let fencepost = case.sandbox.command(&line);
        let mut command = std::process::Command::new("unshare");
        command.args(["-r", "-m", "sh", "-c", &mount, "sh"]).arg(fencepost.get_program()).args(fencepost.get_args());
        command.current_dir(case.directory()).env("TMPDIR", case.sandbox.path("small"));
        crate::cli_support::Ran::from(command.output().expect("unshare is installed"))
    };
    if ["unshare: ", "mount: "].iter().any(|who| full("1m", "1m").err.starts_with(who)) {
        return targets::skip("no mount namespace for a small file system");
    }
    for (memory, disk) in [("1m", "4k"), ("4k", "1m")] {
        let ran = full(memory, disk);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    }
    full("4k", "4k").golden("no-room-for-pools");
}

/// Without the operation that puts what it needs, the program dies without any crash: that it dies after one is no bug.
#[test]
fn a_program_that_cannot_do_without_an_operation() {
    for way in ["fragile", "status"] {
        let right = check(&case(&[]), way);
        assert_eq!(right.code, Some(0), "{way}: {}{}", right.out, right.err);
    }
    let case = case(&["-DBUG"]);
    let bug = check(&case, "fragile");
    assert_eq!(bug.code, Some(1), "{}{}", bug.out, bug.err);
    // Each of the puts can be lost, and they are one bug: which loss is shown does not matter.
    let told = ["operation 2 (`get 1`)", "`get 1`", "`get 2`"].map(|what| {
        format!("recovery succeeded, but in {what} the program was killed by SIGSEGV in look_up (reader+0x")
    });
    assert!(told.iter().any(|told| bug.out.contains(told)), "{}", bug.out);
    let id = bug.out.split("fencepost replay ").nth(1).and_then(|rest| rest.split('`').next()).expect("a command");
    case.run(&["replay", id]).expect(1, &["reproduced: recovery, or an operation after it, was killed by SIGSEGV"]);
}
