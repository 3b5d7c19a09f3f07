//! Programs with several bugs at once, made on the spot: each bug is found exactly once, with a failure of its own as evidence, and one
//! more bug beside a baseline of the others is the only new finding.

use std::path::Path;
use std::process::Command;

use crate::cli_support::Sandbox;
use serde_json::Value;
use targets::blind::{Reported, Tally};
use targets::crash::{Variant, with_operations};
use targets::generated::{Bug, complaint, function, source};

struct Program {
    sandbox: Sandbox,
}

impl Program {
    fn new() -> Program {
        Program { sandbox: Sandbox::new() }
    }

    /// Findings of a default check: of each its function and whether it is known, and the whole text.
    fn check(&self, bugs: &[Bug], options: &[&str]) -> Vec<(String, bool, String)> {
        self.check_with_lint(bugs, &[&["--no-lint"], options].concat())
    }

    fn check_with_lint(&self, bugs: &[Bug], options: &[&str]) -> Vec<(String, bool, String)> {
        std::fs::write(self.sandbox.path("many.c"), source(bugs)).expect("writable");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-mclwb", "-o"]).arg(self.sandbox.path("many")).arg(self.sandbox.path("many.c"));
        assert!(cc.status().expect("cc is installed").success());
        let _ = std::fs::remove_file(self.sandbox.path("pool"));
        let mut arguments = vec!["check", "--message-format", "json", "--recover", "./many pool check"];
        arguments.extend(options);
        arguments.extend(["--", "./many", "pool"]);
        let ran = self.sandbox.run_limited(&arguments);
        let values = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let findings = values.filter(|value| value["type"] == "finding");
        findings
            .map(|finding| {
                let function = finding["locations"][0]["function"].as_str().unwrap_or_default().to_owned();
                (function, finding["baseline"] == "known", finding.to_string())
            })
            .collect()
    }
}

/// Every bug once, and its evidence is a failure of its own slot.
#[track_caller]
fn assert_each_once(bugs: &[Bug], found: &[(String, bool, String)]) {
    let mut functions: Vec<&str> = found.iter().map(|(function, ..)| function.as_str()).collect();
    functions.sort_unstable();
    let wrong = bugs.iter().enumerate().filter(|(_, bug)| **bug != Bug::None);
    let expected: Vec<String> = wrong.map(|(number, _)| function(number)).collect();
    assert_eq!(functions, expected, "{bugs:?}");
    for (own, _, text) in found {
        let slot = (0..bugs.len()).find(|&slot| function(slot) == *own).expect("a slot's function");
        assert!(text.contains(&complaint(slot)), "{own} is shown with another failure: {text}");
    }
}

#[test]
fn lost_stores_do_not_hide_each_other() {
    let program = Program::new();
    for count in [5, 18, 30] {
        let bugs = vec![Bug::NeverFlushed; count];
        assert_each_once(&bugs, &program.check(&bugs, &[]));
    }
}

#[test]
fn bugs_of_all_classes_are_found_together() {
    let program = Program::new();
    for shift in 0..3 {
        let bugs: Vec<Bug> = (0..15).map(|number| Bug::ALL[(number * 3 + shift) % Bug::ALL.len()]).collect();
        assert_each_once(&bugs, &program.check(&bugs, &[]));
    }
}

/// `replay` and `debug` show a finding's own bug: no other slot is wrong in its crash image.
#[test]
fn the_image_of_a_finding_has_its_own_bug_alone() {
    let program = Program::new();
    let bugs: Vec<Bug> = (0..15).map(|number| Bug::ALL[(number * 3 + 1) % Bug::ALL.len()]).collect();
    let found = program.check(&bugs, &[]);
    assert_each_once(&bugs, &found);
    for (own, _, text) in &found {
        let finding: Value = serde_json::from_str(text).expect("JSON");
        let bundle = program.sandbox.path(".fencepost").join(finding["id"].as_str().expect("an id"));
        let image = std::fs::read(bundle.join("pool-0")).expect("a crash image");
        let word = |at: usize| u64::from_le_bytes(image[at..at + 8].try_into().expect("eight bytes"));
        let is_wrong = |slot: &usize| {
            let (value, mark) = (word(slot * 128), word(slot * 128 + 64));
            if bugs[*slot] == Bug::Halves { (value == 7) != (mark == 8) } else { mark == 7 && value != 7 }
        };
        let wrong: Vec<String> = (0..bugs.len()).filter(is_wrong).map(function).collect();
        assert_eq!(wrong, [own.as_str()], "{text}");
    }
}

#[test]
fn thirty_bugs_have_more_than_a_hundred_causes() {
    let bugs: Vec<Bug> = (0..37).map(|number| Bug::ALL[number * 3 % Bug::ALL.len()]).collect();
    assert_each_once(&bugs, &Program::new().check(&bugs, &[]));
}

/// Checks a program with these bugs: each is found, and by one finding only.
fn assert_all_found(name: &str, bugs: &[u32], count: &str) {
    let targets = with_operations().expect("targets");
    let target = targets.iter().find(|target| target.name == name).expect("a program with operations");
    let sandbox = Sandbox::new();
    let bugs: Vec<Variant> = bugs.iter().map(|&bug| Variant(bug)).collect();
    let program = target.build_together(&bugs, &sandbox.path("built")).expect("it compiles");
    let grammar = target.grammar.as_ref().expect("a grammar").display().to_string();
    let strategy = "program-order,guaranteed-only,few-lines:1:256";
    let mut arguments: Vec<String> =
        ["check", "--no-lint", "--message-format", "json", "--no-select"].map(str::to_owned).into();
    arguments.extend(["--strategy", strategy, "--grammar", &grammar, "--count", count].map(str::to_owned));
    if target.run.iter().any(|word| word == "{socket}") {
        arguments.extend(["--op-socket", "{socket}"].map(str::to_owned));
    }
    arguments.push("--".to_owned());
    arguments.extend(target.run_command(&program, Path::new("pool")));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = sandbox.run_limited(&arguments);
    let values = ran.out.lines().filter(|line| line.starts_with('{'));
    let values: Vec<Value> = values.map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let findings = values.iter().filter(|value| value["type"] == "finding");
    let reported: Vec<Reported> = findings
        .map(|finding| Reported {
            class: finding["class"].as_str().unwrap_or_default().to_owned(),
            lines: finding["locations"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|it| Some(it["line"].as_u64()? as u32))
                .collect(),
        })
        .collect();
    let tally = Tally::of(target, &bugs, &reported);
    assert_eq!(tally.found(), bugs.len(), "{}", ran.out);
    assert!(tally.again.is_empty() && tally.strange.is_empty(), "{}", ran.out);
}

/// Bug 3 of the program changes a count too early, so that every crash in an insertion fails with everything in PM; bug 1 forgets a fence.
#[test]
fn a_bug_that_shows_in_program_order_does_not_hide_the_others() {
    assert_all_found("c/redo", &[1, 3], "12");
}

/// Bug 5 flushes half of a new table only, bug 6 forgets the fence after it: either would stay without the other.
#[test]
fn a_missing_flush_and_a_missing_fence_after_one_store_are_two_findings() {
    assert_all_found("cpp/chained", &[5, 6], "60");
}

/// Bug 3 changes the words of a value one by one, bug 4 a count beside what is counted, both in one function.
#[test]
fn two_torn_updates_of_one_function_are_two_findings() {
    assert_all_found("c/server", &[3, 4], "8");
}

/// One fence would help both where they meet, but each has its own place.
#[test]
fn two_missing_fences_are_two_findings() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("fences.c"), include_str!("../programs/fences.c")).expect("writable");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-mclwb", "-o"]).arg(sandbox.path("fences")).arg(sandbox.path("fences.c"));
    assert!(cc.status().expect("cc is installed").success());
    let json = ["check", "--no-lint", "--message-format", "json"];
    let run = ["--recover", "./fences pool check", "--", "./fences", "pool"];
    let ran = sandbox.run_limited(&[&json[..], &run[..]].concat());
    let values = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let findings = values.filter(|value| value["type"] == "finding");
    let mut functions: Vec<String> = findings.map(|finding| finding["locations"][0]["function"].to_string()).collect();
    functions.sort_unstable();
    assert_eq!(functions, ["\"copy_all\"", "\"make\""], "{}", ran.out);
}

#[test]
fn misuse_and_power_failure_are_one_finding() {
    let program = Program::new();
    let bugs: Vec<Bug> = (0..10).map(|number| Bug::ALL[number % Bug::ALL.len()]).collect();
    let found = program.check_with_lint(&bugs, &[]);
    assert_each_once(&bugs, &found);
    let also =
        |rule: &str| found.iter().filter(|(.., text)| text.contains(&format!("\"rule\":\"{rule}\",\"title\""))).count();
    // What is never flushed, and what one fence completes together.
    assert_eq!((also("FP0301"), also("FP0304")), (2, 2), "{found:#?}");
}

#[test]
fn one_more_bug_is_the_only_new_finding() {
    let program = Program::new();
    let mut bugs: Vec<Bug> = (0..12).map(|number| Bug::ALL[number % 4]).collect();
    for added in [3, 6, 9] {
        let more = std::mem::replace(&mut bugs[added], Bug::None);
        let before = program.check(&bugs, &["--write-baseline", "known.json"]);
        assert_eq!(before.len(), 11);
        bugs[added] = more;
        let after = program.check(&bugs, &["--baseline", "known.json"]);
        let new: Vec<&str> =
            after.iter().filter(|(_, known, _)| !known).map(|(function, ..)| function.as_str()).collect();
        assert_eq!(new, [function(added)], "{added}");
    }
}

#[test]
fn a_program_without_bugs_stays_clean() {
    assert_eq!(Program::new().check(&[Bug::None; 12], &[]), []);
}
