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
