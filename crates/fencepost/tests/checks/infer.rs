//! `--strategy inferred`: conditions are inferred while recording, kept beside the trace, and broken.

use std::path::Path;

use crate::cli_support::Sandbox;
use targets::crash::{Variant, with_operations};

/// The hash table whose new keys can be there without their values.
const LEVEL: &str = "c/level";
/// The array whose log can be marked as written before it is. Only recovery reads the log.
const ARRAY: &str = "c/array";

const CHECK: [&str; 10] =
    ["check", "--no-lint", "--no-select", "--strategy", "inferred", "--count", "40", "--seed", "7", "--grammar"];

/// The first variant of a program, and its grammar.
fn built(sandbox: &Sandbox, name: &str) -> [String; 2] {
    let targets = with_operations().expect("the suite can be read");
    let target = targets.iter().find(|target| target.name == name).expect("it is in the suite");
    let program = target.build(Variant(1), Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("it builds");
    let grammar = target.grammar.clone().expect("it takes operations");
    // A pool of its own for each test.
    assert!(!sandbox.path("pool").exists());
    [program, grammar].map(|path| path.display().to_string())
}

#[test]
fn a_broken_condition_is_found_and_told() {
    let sandbox = Sandbox::new();
    let [program, grammar] = built(&sandbox, LEVEL);
    let ran = sandbox.run(&[&CHECK[..], &[&grammar, "--", &program, "pool"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.out.contains("error[FP0602]") && ran.out.contains("level.c"), "{}", ran.out);
    let hint = ran.out.lines().find(|line| line.contains("breaks a condition inferred from the run")).expect("a hint");
    assert!(hint.matches("level.c:").count() == 2, "both source lines: {hint}");
}

#[test]
fn a_condition_that_only_recoveries_show_is_broken() {
    let sandbox = Sandbox::new();
    let [program, grammar] = built(&sandbox, ARRAY);
    let ran = sandbox.run(&[&CHECK[..], &[&grammar, "--", &program, "pool"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let hint = ran.out.lines().find(|line| line.contains("breaks a condition inferred from the run")).expect("a hint");
    assert!(hint.matches("array.c:").count() == 2, "both source lines: {hint}");
}

#[test]
fn conditions_lie_beside_the_trace_and_are_asked_for() {
    let sandbox = Sandbox::new();
    let [program, _] = built(&sandbox, LEVEL);
    let record = |options: &[&str]| {
        // Only a new pool is stored to.
        let _ = std::fs::remove_file(sandbox.path("pool"));
        let ran = sandbox.run(&[&["record", "--quiet", "-o", "trace"], options, &["--", &program, "pool"]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    };
    let crash = || sandbox.run(&["crash", "--no-journal", "--strategy", "inferred", "trace"]);
    record(&[]);
    let ran = crash();
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("trace.conditions does not exist") && ran.err.contains("record --infer"), "{}", ran.err);

    record(&["--infer"]);
    assert!(sandbox.path("trace.conditions").exists());
    let ran = crash();
    assert_eq!(ran.code, Some(0), "{}", ran.err);

    std::fs::write(sandbox.path("trace.conditions"), "{\"fencepost_conditions\":1").expect("it can be written");
    let ran = crash();
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("is not a file of conditions"), "{}", ran.err);
}
