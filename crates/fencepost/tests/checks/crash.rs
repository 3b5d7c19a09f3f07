//! `fencepost check`, `crash`, `replay` and `debug` on a small program with a bug: searches that are interrupted, killed and
//! divided, recoveries that misbehave, and what users get wrong.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cli_support::{Sandbox, pool_program};
use crate::crash_support::{Case, parse, symptom};

/// Records of a workload whose search can be held by the gate of `records.c`.
const TO_INTERRUPT: &str = "20";

/// The one bug of the program, as JSON has it.
#[track_caller]
fn assert_the_bug(findings: &[serde_json::Value]) {
    assert!(!findings.is_empty(), "nothing was found");
    let guilty = |finding: &serde_json::Value| {
        finding["class"] == "ordering" && finding["locations"][0]["function"] == "add" && finding["replay"].is_string()
    };
    assert!(findings.iter().any(guilty), "{findings:#?}");
}

#[test]
fn an_interrupted_search_goes_on_from_its_journal() {
    let case = Case::new();
    case.record(TO_INTERRUPT);
    let recovery = case.gated();
    let whole = case.run(&case.crash_line(&recovery, &["--journal", "whole"]));
    assert_the_bug(&parse(&whole).0);

    for engine in ["fork-server", "plain"] {
        let line = case.crash_line(&recovery, &["--journal", "parts", "--engine", engine]);
        let _ = fs::remove_file(case.sandbox.path("parts"));
        case.close_gate();
        let mut interrupted = case.start(&line);
        case.wait_for_gate(&mut interrupted);
        assert!(fs::read(case.sandbox.path("parts")).is_ok_and(|journal| !journal.is_empty()));
        // As Ctrl-C does: the recovery that waits at the gate is in the terminal's reach, but it must not hear of it.
        interrupted.signal_group(libc::SIGINT);
        case.open_gate();
        let interrupted = interrupted.end();
        interrupted.golden("search-interrupted");
        let (_, summary) = parse(&interrupted);
        assert_eq!(summary["complete"], false);
        case.wait_until_forgotten();
        assert_eq!(case.slots_left(), Vec::<std::path::PathBuf>::new());

        let resumed = case.run(&line);
        assert_eq!(resumed.code, Some(1), "{engine}: {}", resumed.err);
        assert_same_findings(&whole, &resumed);
    }
}

#[track_caller]
fn assert_same_findings(whole: &crate::cli_support::Ran, other: &crate::cli_support::Ran) {
    let ((expected, summary), (found, other_summary)) = (parse(whole), parse(other));
    assert_eq!(found, expected);
    for number in ["points_decided", "states_decided", "states_failing", "complete"] {
        assert_eq!(other_summary[number], summary[number], "{number}");
    }
}

#[test]
fn a_killed_search_goes_on_from_its_journal() {
    let case = Case::new();
    case.record(TO_INTERRUPT);
    let recovery = case.gated();
    let whole = case.run(&case.crash_line(&recovery, &["--journal", "whole"]));
    let line = case.crash_line(&recovery, &["--journal", "parts"]);
    case.close_gate();
    for engine in ["fork-server", "plain", "fork-server"] {
        let mut killed = case.start(&[&line[..], &["--engine", engine]].concat());
        case.wait_for_gate(&mut killed);
        killed.signal(libc::SIGKILL);
        killed.end();
        case.wait_until_forgotten();
    }
    case.open_gate();
    let resumed = case.run(&line);
    // Nobody could clean up after a kill; the next one does.
    assert_eq!(case.slots_left(), Vec::<std::path::PathBuf>::new());
    assert_eq!(resumed.code, Some(1), "{}", resumed.err);
    assert_same_findings(&whole, &resumed);
}

#[test]
fn three_shards_together_are_the_whole() {
    let case = Case::new();
    case.record("5");
    let recovery = case.recovery("check");
    let whole = case.run(&case.crash_line(&recovery, &["--no-journal"]));
    assert_the_bug(&parse(&whole).0);
    let total = parse(&whole).1["points_decided"].as_u64().expect("a number");
    let mut merge = Vec::new();
    let mut decided = 0;
    for (shard, journal) in [("1/3", "one"), ("2/3", "two"), ("3/3", "three")] {
        let part = case.run(&case.crash_line(&recovery, &["--shard", shard, "--journal", journal]));
        let points = parse(&part).1["points_decided"].as_u64().expect("a number");
        assert!(points < total, "{shard}: {points} of {total}");
        decided += points;
        merge.extend(["--merge", journal]);
    }
    assert_eq!(decided, total);
    let merged = case.run(&case.crash_line(&recovery, &merge));
    assert_eq!(merged.code, Some(1), "{}", merged.err);
    assert_same_findings(&whole, &merged);
}

#[test]
fn a_journal_of_another_search_is_refused() {
    let case = Case::new();
    case.record("1");
    let (check, three) = (case.recovery("check"), case.recovery("three"));
    assert_eq!(case.run(&case.crash_line(&check, &["--journal", "j"])).code, Some(1));
    let other = case.run(&case.crash_line(&three, &["--journal", "j"]));
    other.golden("journal-of-another-search");
    case.run(&case.crash_line(&check, &["--shard", "4/3"])).golden("no-such-shard");
}

#[test]
fn the_summary_says_what_was_covered() {
    let case = Case::new();
    let ran = case.check(&["--recover", &case.recovery("check")]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let (findings, summary) = parse(&ran);
    assert_the_bug(&findings);
    for number in ["crash_points", "states_decided", "recovery_runs"] {
        assert!(summary[number].as_u64().is_some_and(|number| number > 0), "{number}: {summary}");
    }
    assert!(summary["states_possible"].as_str().is_some_and(|n| n.parse::<u64>().is_ok_and(|n| n > 1)), "{summary}");
    assert_eq!(summary["complete"], true);
    assert_eq!(summary["oracles"], serde_json::json!(["recovery"]));
    assert!(case.slots_left().is_empty());
}

#[test]
fn a_pool_that_was_there_before_is_told_and_can_be_left_out() {
    let case = Case::new();
    let recovery = case.recovery("check");
    let check = |more: &[&str], words: &str| {
        let mut line = vec!["check", "--no-lint", "--jobs", "1", "--recover", &recovery, "--pm", &case.pool];
        line.extend(more);
        line.extend(["--", "./records", &case.pool, "run", "1"]);
        let ran = case.run(&line);
        let told = ran.out.contains("existed before the run") || ran.err.contains("existed before the run");
        assert_eq!(told, !words.is_empty(), "{more:?}: {}{}", ran.out, ran.err);
        ran
    };
    let first = check(&[], "");
    // More than a tick of the file system's clock before the next run begins.
    std::thread::sleep(std::time::Duration::from_millis(100));
    check(&[], "told");
    let again = check(&["--fresh"], "");
    assert_eq!((first.code, &first.out), (again.code, &again.out));
    fs::copy(case.sandbox.path(&case.pool), case.sandbox.path("image")).expect("there");
    let missing = case.run(&["check", "--pool-from", "nothing", "--pm", &case.pool, "--", "./records", &case.pool]);
    missing.expect(2, &["--pool-from: cannot copy nothing"]);
    case.run(&["check", "--fresh", "--", "./records", &case.pool]).expect(2, &["--pm"]);
    case.run(&["check", "--fresh", "--pm", "*", "--", "./records", &case.pool]).expect(2, &["`*` is a pattern"]);
}

#[test]
fn the_report_for_people_says_how_to_see_the_failure_again() {
    let case = Case::new();
    let recovery = case.recovery("check");
    let ran = case.run(&["check", "--no-lint", "--recover", &recovery, "--", "./records", &case.pool, "run", "2"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    for words in ["fencepost replay ", "crash points (", "a record is lost", "records.c:", "`add`"] {
        assert!(ran.out.contains(words), "`{words}` is not in: {}", ran.out);
    }
}

#[test]
fn a_finding_is_told_although_its_bundle_cannot_be_written() {
    let case = Case::new();
    case.record("5");
    fs::write(case.sandbox.path("taken"), "a file, not a folder").unwrap();
    let recovery = case.gated();
    let ran = case.run(&case.crash_line(&recovery, &["--no-journal", "--bundles", "taken"]));
    ran.golden_note("bundle-cannot-be-written", "finding");
    let (findings, _) = parse(&ran);
    assert!(
        findings.iter().any(|finding| finding["class"] == "ordering" && finding["replay"].is_null()),
        "{findings:#?}"
    );
}

#[test]
fn a_replay_says_whether_the_failure_is_still_there() {
    let case = Case::new();
    let (findings, _) = parse(&case.check(&["--recover", &case.recovery("check")]));
    let finding = findings.first().expect("the bug");
    let id = finding["id"].as_str().expect("text");
    let words: Vec<&str> = finding["replay"].as_str().expect("a command").split(' ').collect();
    assert_eq!(words, ["fencepost", "replay", id]);
    let content = fs::read(case.sandbox.path(&case.pool)).expect("the pool");

    case.run(&words[1..]).expect(1, &["reproduced", "a record is lost"]);
    case.run(&["replay", &id[..4]]).expect(1, &["reproduced"]);
    case.build(&["-DREPAIRED"]);
    case.run(&["replay", id]).expect(0, &["passes"]);
    assert_eq!(fs::read(case.sandbox.path(&case.pool)).expect("the pool"), content);

    // The image is in the bundle; the pool's own file need not be there.
    case.build(&[]);
    fs::remove_file(case.sandbox.path(&case.pool)).expect("there");
    case.run(&["replay", id]).expect(1, &["reproduced"]);
    assert!(!case.sandbox.path(&case.pool).exists());
}

#[test]
fn bundles_that_cannot_be_used_are_told_apart() {
    let case = Case::new();
    case.run(&["replay", "12345678"]).golden("nothing-to-replay");
    let (findings, _) = parse(&case.check(&["--bundles", "b", "--recover", &case.recovery("check")]));
    let id = findings[0]["id"].as_str().expect("text");
    assert_eq!(findings[0]["replay"], format!("fencepost replay --bundles b {id}"));
    let replay = ["replay", "--bundles", "b", id];
    case.run(&["replay", "--bundles", "b", "zzzz"]).golden("no-such-finding");
    case.run(&["debug", "--bundles", "b", "zzzz"]).golden("no-such-finding-to-debug");

    let bundle = case.sandbox.path("b").join(id);
    let image = fs::read(bundle.join("pool-0")).expect("an image");
    fs::remove_file(bundle.join("pool-0")).expect("there");
    case.run(&replay).golden("bundle-without-an-image");
    fs::write(bundle.join("pool-0"), image).expect("writable");
    case.run(&replay).expect(1, &[]);

    let text = fs::read_to_string(bundle.join("finding.json")).expect("text");
    for (damaged, name) in [
        (&text[..text.find('\n').expect("lines")], "cut-bundle"),
        ("", "empty-bundle"),
        (&text.replacen("\"fencepost_bundle\": 2", "\"fencepost_bundle\": 9", 1), "newer-bundle"),
    ] {
        fs::write(bundle.join("finding.json"), damaged).expect("writable");
        case.run(&replay).golden(name);
    }
}

#[test]
fn the_debugger_stops_before_the_pool_is_opened() {
    if !Command::new("gdb").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return targets::skip("there is no gdb");
    }
    let case = Case::new();
    let (findings, _) = parse(&case.check(&["--recover", &case.recovery("check")]));
    let id = findings[0]["id"].as_str().expect("text");
    let gdb = case.run(&["debug", id, "--", "-batch", "-ex", "backtrace", "-ex", "continue", "-ex", "continue"]);
    if gdb.out.contains("ptrace") || gdb.err.contains("ptrace: ") {
        return targets::skip("gdb may not trace here");
    }
    assert!(gdb.out.contains("open_pool"), "{}{}", gdb.out, gdb.err);
    assert!(!gdb.out.contains("is_lost"), "{}", gdb.out);
    assert!(gdb.out.contains("exited with code 01") || gdb.err.contains("a record is lost"), "{}{}", gdb.out, gdb.err);
    case.run(&["debug", "--gdb", "no-such-gdb", id]).golden("no-such-debugger");
}

#[test]
fn a_recovery_that_never_succeeds_is_no_bug_of_the_program() {
    let case = Case::new();
    let ran = case.check(&["--recover", &case.recovery("never")]);
    ran.golden("recovery-never-succeeds");
    assert_eq!(ran.out, "");
}

#[test]
fn a_recovery_that_looks_elsewhere_is_noticed() {
    let case = Case::new();
    fs::write(case.sandbox.path("other"), [0; 4096 * 4]).expect("writable");
    let ran = case.check(&["--recover", "./records other check"]);
    ran.golden_note("recovery-looks-elsewhere", "recovery reads");
    let right = case.check(&["--recover", &case.recovery("check")]);
    assert!(!right.err.contains("reads nothing"), "{}", right.err);
}

/// What a listing shows is compared with what is there in each crash state, by the program itself.
#[test]
fn a_recovery_that_lists_its_folder_is_forked() {
    let sandbox = Sandbox::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets/crash");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-mclwb", "-I"]).arg(folder.join("include")).arg("-o").arg(sandbox.path("segments"));
    let built = compiler.arg(folder.join("files/segments.c")).status();
    assert!(built.expect("cc is installed").success());
    let ran = sandbox.run(&["check", "--no-lint", "--recover", "./segments p check", "--", "./segments", "p", "run"]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    let said = format!("{}{}", ran.out, ran.err);
    assert!(!said.contains("native mode"), "{said}");
    assert!(said.contains("tested 27 of 27 crash points"), "{said}");
}

/// Runs share a process where all that they do can be undone. What cannot be, and is not noticed to be, shows in a fresh process.
#[test]
fn a_process_that_cannot_be_used_again_is_noticed() {
    let sandbox = Sandbox::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/worn.c");
    let built = Command::new("cc").args(["-O1", "-g", "-o"]).arg(sandbox.path("worn")).arg(source).status();
    assert!(built.expect("cc is installed").success());
    let arguments = ["check", "--no-lint", "--jobs", "1", "--no-equivalence", "--every", "--strategy", "program-order"];
    let ran = sandbox.run(&[&arguments[..], &["--recover", "./worn p check", "--", "./worn", "p", "run"]].concat());
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains("in a process that earlier recoveries had used"), "{said}");
    assert!(!said.contains("exhaustive at"), "{said}");
    // A run in a fresh process does not fail, nor does a native one.
    assert_eq!(ran.code, Some(0), "{said}");
}

#[test]
fn a_recovery_that_is_not_deterministic_is_noticed() {
    let case = Case::new();
    let recovery = format!("{} {}", case.recovery("moody"), case.gate().display());
    let ran = case.run(&[
        "check",
        "--no-lint",
        "--jobs",
        "1",
        "--recover",
        &recovery,
        "--",
        "./records",
        &case.pool,
        "run",
        "5",
    ]);
    ran.golden_note("recovery-not-deterministic", "recovery is");
}

#[test]
fn commands_and_options_that_cannot_be_are_refused() {
    let case = Case::new();
    let check = case.recovery("check");
    case.check(&["--recover", "no-such-program x"]).golden("recovery-not-found");
    case.check(&["--recover", "./no-such-program x"]).golden("no-such-recovery-file");
    case.check(&["--recover", &check, "--checker", "no-such-checker"]).golden("checker-not-found");
    case.check(&["--recover", ""]).golden("recovery-empty");
    case.check(&["--recover", &check, "--strategy", "sideways"]).golden("no-such-strategy");
    case.check(&["--recover", &check, "--budget", "5 parsecs"]).golden("no-such-budget");
    case.check(&["--recover", &check, "--timeout", "soon"]).golden("no-such-timeout");
    case.check(&["--recover", &check, "--fail-pattern", "("]).golden("no-such-pattern");
    case.check(&["--recover", &check, "--exit-ok", "fine"]).golden("no-such-exit-code");
    case.sandbox.run(&["crash", "no-such-trace"]).golden("no-such-trace-to-crash");
    case.run(&["check", "--", "./no-such-program"]).golden("no-such-program-to-check");
}

#[test]
fn a_workload_without_persistent_memory_is_said() {
    let case = Case::new();
    case.run(&["check", "--", "/bin/true"]).golden("check-without-pm");
    let pool = pool_program().to_str().expect("text");
    case.run(&["check", "--", pool, "nothing", "pool"]).expect(4, &["no persistent-memory activity"]);
}

#[test]
fn a_recovery_may_need_a_shell() {
    let case = Case::new();
    let recovery = format!("cd . && {} 2>&1 | cat >/dev/null; {}", case.recovery("check"), case.recovery("check"));
    let ran = case.check(&["--recover", &recovery]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_the_bug(&parse(&ran).0);
}

#[test]
fn a_checker_judges_what_recovery_left() {
    let case = Case::new();
    let (clean, check) = (case.recovery("clean"), case.recovery("check"));
    let without = case.check(&["--recover", &clean]);
    assert_eq!(without.code, Some(0), "{}{}", without.out, without.err);
    let ran = case.check(&["--recover", &clean, "--checker", &check]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let (findings, _) = parse(&ran);
    assert_the_bug(&findings);
    assert!(symptom(&findings[0]).contains("checker"), "{findings:#?}");
    let id = findings[0]["id"].as_str().expect("text");
    case.run(&["replay", id]).expect(1, &["reproduced", "checker"]);
}

#[test]
fn the_user_says_what_a_failure_is() {
    let case = Case::new();
    let (three, say) = (case.recovery("three"), case.recovery("say"));
    assert_eq!(case.check(&["--recover", &three]).code, Some(1));
    assert_eq!(case.check(&["--recover", &three, "--exit-ok", "0,3"]).code, Some(0));
    assert_eq!(case.check(&["--recover", &say]).code, Some(0));
    let ran = case.check(&["--recover", &say, "--fail-pattern", "is lost$"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let (findings, _) = parse(&ran);
    assert!(symptom(&findings[0]).contains("record is lost"), "{findings:#?}");
    // A pattern is part of the bundle.
    case.run(&["replay", findings[0]["id"].as_str().expect("text")]).expect(1, &["record is lost"]);
}

/// A recovery that misbehaves on lost records: the tool goes on and says so.
#[track_caller]
fn misbehaves(act: &str, options: &[&str]) {
    let case = Case::new();
    let recovery = case.recovery(act);
    let mut line = vec!["check", "--no-lint", "--jobs", "1", "--recover", recovery.as_str()];
    line.extend(options);
    line.extend(["--", "./records", &case.pool, "run", "1"]);
    let ran = case.run(&line);
    ran.golden_findings(&format!("recovery-{act}"));
    assert!(ran.out.contains("\ntested 2 of 2 crash points ("), "{}", ran.out);
    case.wait_until_forgotten();
    assert!(case.slots_left().is_empty());
    assert!(fs::metadata(case.sandbox.path(&case.pool)).is_ok_and(|pool| pool.len() == 4096 * 4));
}

#[test]
fn a_recovery_that_hangs_is_a_finding() {
    misbehaves("hangs", &["--timeout", "1s"]);
}

#[test]
fn a_recovery_that_eats_memory_is_a_finding() {
    misbehaves("eats", &["--memory", "64"]);
}

#[test]
fn a_recovery_that_forks_without_end_is_a_finding() {
    misbehaves("forks", &["--processes", "20"]);
}

#[test]
fn a_recovery_that_deletes_its_pool_is_judged_all_the_same() {
    misbehaves("deletes", &[]);
}

#[test]
fn a_recovery_that_crashes_is_a_finding() {
    misbehaves("crashes", &[]);
}
