//! Operations under bad luck: the user loses patience, the machine runs out of room, processes are killed, and programs read
//! their standard input in unusual ways.

#[expect(dead_code, reason = "each test binary uses its own part")]
mod cli_support;
#[expect(dead_code, reason = "each test binary uses its own part")]
mod crash_support;

use std::fs;

use crash_support::{Case, parse};

const OPERATIONS: &str = "put 1 11\nput 2 22\nget 1\nput 1 12\n";
const TAIL: &str = "get 1\nget 2\n";
/// How many these are.
const LINES: usize = 6;

/// A program of `tests/programs` with operations and a tail beside it.
fn case(program: &str) -> Case {
    let case = Case::of(program, &[]);
    fs::write(case.sandbox.path("ops"), OPERATIONS).expect("writable");
    fs::write(case.sandbox.path("tail"), TAIL).expect("writable");
    case
}

#[test]
fn an_interrupt_in_the_runs_without_a_crash() {
    let case = case("reader");
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
        let mut line = vec!["crash", "trace", "--no-journal", "--message-format", "json", "--jobs", "1"];
        line.extend(["--timeout", "100s", "--strategy", "program-order", "--ops", "ops", "--tail", "tail"]);
        let mut interrupted = case.start(&line);
        case.wait_for_gate(&mut interrupted);
        interrupted.signal_group(number);
        case.open_gate();
        let interrupted = interrupted.end();
        assert_eq!(interrupted.code, Some(130), "{}", interrupted.err);
        assert!(interrupted.err.contains("interrupted in the runs without a crash"), "{}", interrupted.err);
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
fn check(case: &Case, way: &str) -> cli_support::Ran {
    let _ = fs::remove_file(case.sandbox.path(&case.pool));
    let mut line = vec!["check", "--no-lint", "--jobs", "1", "--strategy", "program-order", "--ops", "ops"];
    line.extend(["--tail", "tail", "--output", "trace", "--", "./reader", &case.pool, way]);
    case.run(&line)
}

/// The borders of a recording, and the stores between them.
fn shape(case: &Case) -> String {
    let dump = case.run(&["trace", "dump", "trace"]).out;
    let names = [("operation-begin", '('), ("store", 's'), ("operation-end", ')')];
    let letter = |line: &str| names.iter().find(|(name, _)| line.split(' ').nth(2) == Some(name)).map(|(_, at)| *at);
    dump.lines().filter_map(letter).collect()
}

#[track_caller]
fn assert_read(ways: &[&str]) {
    let case = case("reader");
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
    let case = case("reader");
    let said = |way: &str, text: &str| {
        let ran = check(&case, way);
        assert_eq!((ran.code, ran.err.as_str()), (Some(3), text), "{way}: {}", ran.out);
    };
    let unread = "error: the program did not read operations from its standard input, one line after the other";
    let advice =
        "\nhelp: a program that takes its operations otherwise needs --op-command, --op-socket or --op-begin\n";
    for way in ["closed", "recv", "pread", "mmap"] {
        said(way, &format!("{unread}{advice}"));
    }
    said("epoll", &format!("{unread}; it ended with exit code 96{advice}"));
    said(
        "twice",
        "error: the program read 8 operations though it was given 4: it went back in its standard input\n\
         help: let it read each line of its standard input once, without seeking\n",
    );
}
