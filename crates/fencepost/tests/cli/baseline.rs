//! What fails `check`, `crash` and `lint`: baselines, suppressions, severities, searches that are not complete.

use std::fs;

use crate::cli_support::pool_program;
use crate::crash_support::{Case, parse};

#[test]
fn only_new_findings_fail_a_check() {
    let case = Case::new();
    let check = case.recovery("check");
    let first = case.check(&["--recover", &check, "--write-baseline", "known.json"]);
    assert_eq!(first.code, Some(1), "{}", first.err);
    let (findings, summary) = parse(&first);
    assert!(findings[0].get("baseline").is_none() && summary.get("known").is_none(), "{}", first.out);

    // The file that was written, and what was printed, serve alike.
    fs::write(case.sandbox.path("printed.json"), &first.out).unwrap();
    for baseline in ["known.json", "printed.json"] {
        let again = case.check(&["--recover", &check, "--baseline", baseline]);
        assert_eq!(again.code, Some(0), "{baseline}: {}{}", again.out, again.err);
        let (known, summary) = parse(&again);
        assert_eq!(known.len(), findings.len());
        assert!(known.iter().all(|finding| finding["baseline"] == "known"), "{}", again.out);
        assert_eq!(summary["known"].as_u64(), Some(findings.len() as u64));
    }

    // Nothing is known: all is new.
    let empty = "{\"type\":\"finding\",\"id\":\"00000000\"}\n{\"type\":\"summary\"}\n";
    fs::write(case.sandbox.path("other.json"), empty).unwrap();
    let new = case.check(&["--recover", &check, "--baseline", "other.json"]);
    new.expect(1, &["not found again: 1 finding of the baseline"]);
    assert!(parse(&new).0.iter().all(|finding| finding["baseline"] == "new"), "{}", new.out);
}

#[test]
fn sarif_is_a_baseline_and_says_what_is_new() {
    let case = Case::new();
    case.record("1");
    let check = case.recovery("check");
    let line = |more: &[&'static str]| {
        let mut all = vec!["crash", "trace", "--no-journal", "--jobs", "1", "--recover", &check];
        all.extend(more);
        case.run(&all)
    };
    let first = line(&["--message-format", "sarif"]);
    assert_eq!(first.code, Some(1), "{}", first.err);
    assert!(!first.out.contains("baselineState"), "{}", first.out);
    fs::write(case.sandbox.path("first.sarif"), &first.out).unwrap();
    let second = line(&["--message-format", "sarif", "--baseline", "first.sarif"]);
    assert_eq!(second.code, Some(0), "{}", second.err);
    assert!(second.out.contains("\"baselineState\": \"unchanged\""), "{}", second.out);
    let junit = line(&["--message-format", "junit", "--baseline", "first.sarif"]);
    assert!(junit.out.contains("<skipped") && !junit.out.contains("<failure"), "{}", junit.out);
    // People are told how many there are, and see only what is new.
    let shown = line(&["--baseline", "first.sarif"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(shown.out.contains("known)") && !shown.out.contains("error["), "{}", shown.out);
}

#[test]
fn suppressions_hold_for_crashes_too() {
    let case = Case::new();
    let check = case.recovery("check");
    let intended = "[[suppress]]\nfunction = 'add'\nreason = 'a test'\n[[suppress]]\nline = 9999\nreason = 'gone'\n";
    fs::write(case.sandbox.path("s.toml"), intended).unwrap();
    let ran = case.check(&["--recover", &check, "--suppressions", "s.toml"]);
    ran.expect(0, &["matched nothing (\"gone\")"]);
    let (findings, summary) = parse(&ran);
    assert!(findings.is_empty() && summary["suppressed"].as_u64() > Some(0), "{}", ran.out);
}

#[test]
fn the_user_says_how_bad_is_too_bad() {
    let case = Case::new();
    let check = case.recovery("check");
    assert_eq!(case.check(&["--recover", &check, "--fail-on", "never"]).code, Some(0));
    let pool = pool_program().to_str().expect("text");
    // Correct, with a remark of the lint's.
    let remark = |more: &[&str]| {
        let mut all = vec!["check", "--jobs", "1", "--exit-ok", "5", "--severity", "FP0501=note"];
        all.extend(more);
        all.extend(["--", pool, "store", "pool"]);
        case.run(&all)
    };
    assert_eq!(remark(&[]).code, Some(0));
    let noted = remark(&["--fail-on", "note"]);
    assert_eq!(noted.code, Some(1), "{}{}", noted.out, noted.err);
    assert!(noted.out.contains("[FP0501]"), "{}", noted.out);
    assert_eq!(remark(&["--fail-on", "note", "--allow", "FP0501"]).code, Some(0));
}

#[test]
fn a_search_that_had_to_be_complete() {
    let case = Case::new();
    let clean = case.recovery("clean");
    let complete = ["--recover", &clean, "--require-complete"];
    assert_eq!(case.check(&complete).code, Some(0));
    // No time at all: nothing is found, and nothing was decided.
    let hurried = [&complete[..], &["--budget", "0s"]].concat();
    let ran = case.check(&hurried);
    assert_eq!(ran.code, Some(5), "{}{}", ran.out, ran.err);
    assert_eq!(parse(&ran).1["complete"], false);
    assert_eq!(case.check(&hurried[..2]).code, Some(0));
}

#[test]
fn files_that_are_no_baselines_are_refused_before_anything_runs() {
    let case = Case::new();
    fs::write(case.sandbox.path("text"), "error[FP0602]: nothing orders").unwrap();
    for (file, name) in [("none.json", "no-such-baseline"), ("text", "no-baseline")] {
        case.check(&["--baseline", file]).golden(name);
        assert!(!case.sandbox.path(&case.pool).exists(), "the program ran");
    }
    let check = case.recovery("check");
    case.check(&["--recover", &check, "--write-baseline", "no/such/folder"]).expect(2, &["no/such/folder"]);
}
