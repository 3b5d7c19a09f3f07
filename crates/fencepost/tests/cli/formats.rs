//! `--message-format sarif` and `junit`: standard output is one document, whatever the program prints.

use crate::cli_support::{Ran, Sandbox, pool_program};
use serde_json::Value;

/// Runs a command of fencepost on a program that is noisy and flushes with `clflush`.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let program = pool_program().to_str().expect("text");
    let script = format!("echo noise; exec '{program}' store pool");
    let mut all = arguments.to_vec();
    all.extend(["--", "/bin/sh", "-c", &script]);
    let ran = sandbox.run(&all);
    assert!(sandbox.path("pool").exists(), "the program did not run: {}", ran.err);
    ran
}

fn sarif(ran: &Ran) -> Value {
    let document: Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}\n{}", ran.out, ran.err));
    assert_eq!(document["version"], "2.1.0");
    let invocation = &document["runs"][0]["invocations"][0];
    assert_eq!(invocation["exitCode"].as_i64(), ran.code.map(i64::from), "{}", ran.out);
    document
}

#[test]
fn lint_prints_sarif() {
    let sandbox = Sandbox::new();
    let ran = run(&sandbox, &["lint", "--message-format", "sarif", "--deny", "FP0501"]);
    ran.expect(1, &["noise"]);
    let document = sarif(&ran);
    let result = &document["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"FP0501".into(), &"error".into()));
    let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert!(uri.as_str().is_some_and(|uri| uri.ends_with("pool.c")), "{}", ran.out);
    let rule = &document["runs"][0]["tool"]["driver"]["rules"][0];
    assert!(rule["help"]["markdown"].as_str().is_some_and(|page| page.starts_with("# FP0501")), "{}", ran.out);
}

#[test]
fn lint_prints_junit_by_its_threshold() {
    let sandbox = Sandbox::new();
    let failing = run(&sandbox, &["lint", "--message-format", "junit", "--deny", "FP0501"]);
    failing.expect(1, &["noise"]);
    assert!(failing.out.starts_with("<?xml") && failing.out.ends_with("</testsuites>\n"), "{}", failing.out);
    assert!(failing.out.contains("<failure type=\"FP0501\""), "{}", failing.out);
    let noted = run(&sandbox, &["lint", "--message-format", "junit", "--severity", "FP0501=note"]);
    noted.expect(0, &[]);
    assert!(noted.out.contains("<skipped message=\"note: ") && !noted.out.contains("<failure"), "{}", noted.out);
}

#[test]
fn check_prints_sarif() {
    let sandbox = Sandbox::new();
    let ran = run(&sandbox, &["check", "--jobs", "1", "--exit-ok", "5", "--message-format", "sarif"]);
    let document = sarif(&ran);
    assert!(document["runs"][0]["properties"]["crash"]["crash_points"].is_u64(), "{}", ran.out);
    assert!(!ran.out.contains("noise\n") && ran.err.contains("noise"), "{}", ran.err);
}

#[test]
fn one_run_writes_every_format() {
    let sandbox = Sandbox::new();
    let files = ["--sarif", "f.sarif", "--junit", "f.xml", "--json", "f.json"];
    let with_html = [&files[..], &["--html", "f.html"]].concat();
    for (command, files) in [("lint", &files[..]), ("check", &with_html)] {
        let mut arguments = vec![command, "--deny", "FP0501"];
        if command == "check" {
            arguments.extend(["--jobs", "1", "--exit-ok", "5"]);
        }
        arguments.extend(files);
        let ran = run(&sandbox, &arguments);
        ran.expect(1, &[]);
        assert!(ran.out.contains("error[FP0501]"), "people are told as ever: {}", ran.out);
        let text = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let sarif: Value = serde_json::from_str(&text("f.sarif")).expect("SARIF is JSON");
        assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "FP0501");
        assert_eq!(sarif["runs"][0]["invocations"][0]["exitCode"], 1);
        assert!(text("f.xml").contains("<failure type=\"FP0501\""));
        let lines: Vec<Value> = text("f.json").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let finding = &lines[0];
        assert!(finding["first_event"].is_u64() && finding["thread"]["id"].is_u64(), "{finding}");
        assert!(finding["call_paths"][0]["frames"].is_array(), "{finding}");
        assert_eq!(lines.last().map(|last| last["type"].clone()), Some("summary".into()));
        if command == "check" {
            assert!(text("f.html").contains("FP0501"));
        }
    }
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_runs() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["check", "--sarif", "no/such/f.sarif", "--", "/bin/true"]);
    ran.expect(2, &["--sarif no/such/f.sarif: there is no folder no/such"]);
}

#[test]
fn a_trace_has_no_findings_to_print_so() {
    Sandbox::new().run(&["trace", "stat", "--message-format", "sarif", "x.fptrace"]).expect(2, &["sarif"]);
}
