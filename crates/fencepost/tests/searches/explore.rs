//! `fencepost explore` from the outside: finds what needs a solver, each time the same; says what limits it; goes on without what is missing.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use crate::cli_support::{Ran, Sandbox};
use crate::explore_support::{GUILTY, explore, program, told};
use crate::schema_support::Schema;
use serde_json::Value;

#[track_caller]
fn assert_found(ran: &Ran) {
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("FP0101") && ran.out.contains(&format!(":{GUILTY}")), "{}{}", ran.out, ran.err);
}

#[test]
fn what_it_tells_programs_keeps_to_the_schema_and_every_finding_has_its_input() {
    let sandbox = Sandbox::new();
    let ran = explore(&sandbox, "plain", &["--message-format", "json"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/findings.json");
    let root: Value = serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON");
    for line in ran.out.lines() {
        let errors = Schema { root: &root, closed: true }.errors(&serde_json::from_str(line).expect("JSON"));
        assert!(errors.is_empty(), "{line}\n{errors:#?}");
    }
    let (summary, findings) = told(&ran);
    assert_eq!(findings, [("FP0101".to_owned(), GUILTY)]);
    assert_eq!((&summary["type"], &summary["findings"]), (&"exploration".into(), &1.into()));
    let finding: Value = serde_json::from_str(ran.out.lines().next().expect("a line")).expect("JSON");
    let input = fs::read(sandbox.path(finding["input"].as_str().expect("text"))).expect("kept");
    assert_eq!(input[..3], *b"BUG");
    assert!(!sandbox.path("pool").exists(), "the pool of the last run is left");
}

#[test]
fn an_input_that_decides_nothing_is_said_at_once() {
    let sandbox = Sandbox::new();
    let ran = explore(&sandbox, "copy", &[]);
    ran.expect(0, &["no branch depends on the input"]);
    assert!(ran.out.contains("explored 1 paths"), "{}", ran.out);
    explore(&sandbox, "deaf", &[]).expect(3, &["the program never read its input"]);
}

#[test]
fn a_solver_that_is_missing_or_dies_is_said_and_the_search_goes_on() {
    let sandbox = Sandbox::new();
    let ran = explore(&sandbox, "plain", &["--solver", "/nowhere/z3"]);
    assert_found(&ran);
    assert!(ran.err.contains("the solver `/nowhere/z3` is not found"), "{}", ran.err);
    let killed = sandbox.path("z3");
    fs::write(&killed, "#!/bin/sh\nkill -9 $$\n").expect("writable");
    fs::set_permissions(&killed, fs::Permissions::from_mode(0o755)).expect("ours");
    // The embedded solver gives up soon; on a busy machine it takes a while to start another.
    let ran = explore(&sandbox, "hard", &["--query-limit", "20", "--solver", killed.to_str().expect("text")]);
    assert_found(&ran);
    assert!(ran.err.contains("signal: 9") && ran.err.contains("a query has no answer"), "{}", ran.err);
}

#[test]
fn a_path_that_grows_without_end_is_cut() {
    let sandbox = Sandbox::new();
    let ran = explore(&sandbox, "loop", &["--runs", "2"]);
    ran.expect(0, &["paths have more than", "further branches were not explored"]);
    let ran = explore(&sandbox, "endless", &["--runs", "2", "--run-limit", "1"]);
    ran.expect(0, &["were ended after --run-limit"]);
}

#[test]
fn changing_code_and_threads_are_said() {
    let sandbox = Sandbox::new();
    let ran = explore(&sandbox, "code", &[]);
    assert_found(&ran);
    assert!(ran.err.contains("the program changes its own code"), "{}", ran.err);
    let ran = explore(&sandbox, "thread", &[]);
    assert_found(&ran);
    assert!(ran.err.contains("the program has threads"), "{}", ran.err);
}

#[test]
fn every_branch_is_claimed_only_where_nothing_was_left_out() {
    let sandbox = Sandbox::new();
    let ran = explore(&sandbox, "plain", &[]);
    assert!(ran.out.contains("(every branch tried)") && !ran.out.contains("other paths"), "{}", ran.out);
    for (mode, gap) in [
        ("float", "input became concrete"),
        ("seek", "input became concrete"),
        ("name", "input became concrete"),
        ("thread", "threads, in one order"),
    ] {
        let ran = explore(&sandbox, mode, &[]);
        assert!(ran.out.contains("(no branch left to try)"), "{mode}: {}", ran.out);
        let line = ran.out.lines().find(|line| line.starts_with("other paths may exist:")).unwrap_or_default();
        assert!(line.contains(gap), "{mode}: {}", ran.out);
    }
    // A query that nobody answers.
    let ran = explore(&sandbox, "hard", &["--query-limit", "1", "--message-format", "json"]);
    let (summary, _) = told(&ran);
    assert_eq!(summary["complete"], false);
    assert!(summary["gaps"]["queries without an answer"].as_u64() > Some(0), "{summary}");
}

#[test]
fn where_input_becomes_concrete_is_said_with_its_place() {
    let sandbox = Sandbox::new();
    for (mode, what) in
        [("float", "cvtsi2sd"), ("seek", "argument of a system call"), ("name", "a name or content for the kernel")]
    {
        let ran = explore(&sandbox, mode, &[]);
        assert_found(&ran);
        let line = ran.out.lines().find(|line| line.starts_with("input became concrete")).unwrap_or(&ran.err);
        assert!(line.contains(what), "{line}");
        assert!(mode != "float" || line.contains("solver_cases.c:"), "{line}");
    }
}

#[test]
fn operations_through_sockets_and_commands_are_symbolic() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("ops"), "put 1234\n").expect("writable");
    let stamp = || fs::metadata(program()).and_then(|file| Ok((file.ino(), file.modified()?))).expect("built");
    let before = stamp();
    let program = program().display().to_string();
    let common = ["explore", "--time", "100", "--ops", "ops", "--solver", "embedded", "--runs", "40"];
    let server = ["--op-socket", "{socket}", "--", &program, "pool", "serve", "{socket}"];
    assert_found(&sandbox.run_limited(&[&common[..], &server].concat()));
    let command = format!("{program} pool operation {{op}}");
    fs::write(sandbox.path("ops"), "1234\n").expect("writable");
    let common = ["explore", "--time", "100", "--symbolic", "{k:sym:4}", "--solver", "embedded", "--runs", "40"];
    assert_found(&sandbox.run_limited(&[&common[..], &["--op-command", &command]].concat()));
    let ran = sandbox.run_limited(&["explore", "--op-socket", "{socket}", "--", &program, "pool", "serve", "{socket}"]);
    ran.expect(2, &["need operations"]);
    // It is an argument of the driver, and arguments that are files are put back after each run.
    assert_eq!(stamp(), before, "the program was written to");
}

#[test]
fn a_line_is_reached_and_no_line_is_refused() {
    let sandbox = Sandbox::new();
    let ran = explore(&sandbox, "plain", &["--reach", &format!("solver_cases.c:{GUILTY}")]);
    ran.expect(0, &[]);
    assert!(ran.out.contains("reached solver_cases.c:"), "{}", ran.out);
    explore(&sandbox, "plain", &["--reach", "solver_cases.c:3"]).expect(2, &["no code of the program is there"]);
    explore(&sandbox, "plain", &["--reach", "solver_cases.c"]).expect(2, &["a place is FILE:LINE"]);
}

#[test]
fn fuzzing_with_a_solver_finds_what_mutation_does_not() {
    let sandbox = Sandbox::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets/solve/magic64.c");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-o"]).arg(sandbox.path("magic64")).arg(source);
    assert!(cc.status().expect("cc is installed").success());
    fs::create_dir(sandbox.path("seeds")).expect("writable");
    fs::write(sandbox.path("seeds/one"), "1111111111111111").expect("writable");
    let fuzz = |out: &str, more: &[&str]| {
        let own = ["fuzz", "--executions", "2500", "--seeds", "seeds", "--jobs", "1", "--check-share", "1"];
        let rest = ["--out", out, "--progress", "never", "--", "./magic64", "pool"];
        sandbox.run_limited(&[&own[..], more, &rest].concat())
    };
    let (without, with) = (fuzz("without", &[]), fuzz("with", &["--solve"]));
    assert_eq!(without.code, Some(0), "{}{}", without.out, without.err);
    assert_eq!(with.code, Some(1), "{}{}", with.out, with.err);
    assert!(with.out.contains("FP0101"), "{}", with.out);
    assert!(with.err.contains("1 of 1 findings are in solved cases"), "{}", with.err);
    let cases = fs::read_to_string(sandbox.path("with/cases.jsonl")).expect("kept");
    assert!(cases.contains("\"found_by\":\"solving\""), "{cases}");
}

#[test]
fn the_same_seed_takes_the_same_way() {
    for search in ["pm-aware", "random"] {
        let once = || {
            let sandbox = Sandbox::new();
            let ran = explore(
                &sandbox,
                "hard",
                &["--search", search, "--runs", "12", "--query-limit", "20", "--message-format", "json"],
            );
            let (mut summary, findings) = told(&ran);
            let fields = summary.as_object_mut().expect("an object");
            for time in ["seconds", "cpu_seconds", "running_seconds", "solving_seconds"] {
                fields.remove(time);
            }
            for moment in fields["progress"].as_array_mut().expect("a list") {
                (moment[0], moment[4]) = (0.into(), 0.into());
            }
            let mut inputs: Vec<(String, Vec<u8>)> = fs::read_dir(sandbox.path("fencepost-explore"))
                .expect("made")
                .flatten()
                .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "input"))
                .map(|entry| (entry.file_name().display().to_string(), fs::read(entry.path()).expect("readable")))
                .collect();
            inputs.sort();
            (summary, findings, inputs)
        };
        let (first, second) = (once(), once());
        assert!(first.2.len() > 1);
        assert_eq!(first, second);
    }
}
