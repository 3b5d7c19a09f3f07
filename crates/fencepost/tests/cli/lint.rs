//! `fencepost lint` and `fencepost explain`: what they refuse, and what they say. What lint finds is tested by
//! `lint_targets`.

use std::fs;

use crate::cli_support::{Sandbox, pool_program};

#[test]
fn explain_lists_every_rule_and_explains_each() {
    let sandbox = Sandbox::new();
    let list = sandbox.run(&["explain"]);
    assert_eq!(list.code, Some(0), "{}", list.err);
    let rules: Vec<&str> = list.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(rules.len() >= 20, "{}", list.out);
    for rule in rules {
        let page = sandbox.run(&["explain", rule]);
        assert_eq!(page.code, Some(0), "{}", page.err);
        assert!(page.out.starts_with(&format!("# {rule}: ")) && page.out.contains("## Repaired"), "{}", page.out);
    }
    assert!(sandbox.run(&["explain", "store-not-durable"]).out.starts_with("# FP0101"));
    assert!(sandbox.run(&["explain", "ordering"]).out.starts_with("# FP0602"));
    sandbox.run(&["explain", "FP9999"]).expect(2, &["no rule `FP9999`"]);
}

#[test]
fn wrong_options_are_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    let refused = |arguments: &[&str], name: &str| {
        let mut all = vec!["lint"];
        all.extend(arguments);
        all.extend(["--", "/bin/true"]);
        sandbox.run(&all).golden(name);
    };
    refused(&["--allow", "FP9999"], "no-such-rule");
    refused(&["--severity", "FP0101=bad"], "no-such-severity");
    refused(&["--severity", "FP0101"], "severity-without-level");
    refused(&["--set", "FP0403.types=x"], "setting-that-is-no-number");
    refused(&["--model", "arm"], "no-such-model");
    refused(&["--suppressions", "none.toml"], "no-suppressions-file");
    refused(&["--rules", "none.rhai"], "no-rules-file");
    refused(&["--config", "none.toml"], "no-configuration");

    fs::write(sandbox.path("s.toml"), "[[suppress]]\nrule = 'FP0301'\n").unwrap();
    refused(&["--suppressions", "s.toml"], "suppression-without-reason");
    fs::write(sandbox.path("endless.rhai"), "fn rule() { loop { } }").unwrap();
    refused(&["--rules", "endless.rhai"], "endless-rule");
    fs::write(sandbox.path("broken.rhai"), "fn rule() {").unwrap();
    refused(&["--rules", "broken.rhai"], "broken-rule");
    fs::write(sandbox.path("fencepost.toml"), "[lint]\nfail-on = 'never'\n[lint.severity]\nFP0301 = 'quiet'\n")
        .unwrap();
    refused(&[], "no-such-severity-in-the-configuration");
}

#[test]
fn what_is_not_a_trace_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.run(&["lint", "none.fptrace"]).golden("no-such-trace-to-lint");
    assert_eq!(sandbox.run(&["lint"]).code, Some(2));
}

#[test]
fn severities_suppressions_and_exit_codes_work_together() {
    let sandbox = Sandbox::new();
    let program = pool_program().to_str().expect("text");
    let lint = |arguments: &[&str], act: &str| {
        let mut all = vec!["lint", "--message-format", "json"];
        all.extend(arguments);
        all.extend(["--", program, act, "pool"]);
        sandbox.run(&all)
    };
    // Correct, and `clflush` is only noted where that is asked for.
    let clean = lint(&[], "store");
    assert_eq!(clean.code, Some(0), "{}", clean.err);
    let last = clean.out.lines().last().expect("a summary");
    assert!(last.starts_with(r#"{"type":"summary","version":1,"findings":0,"#), "{}", clean.out);
    let noted = lint(&["--severity", "FP0501=note"], "store");
    assert_eq!(noted.code, Some(0), "{}", noted.err);
    assert!(noted.out.contains(r#""rule":"FP0501","class":"performance","severity":"note""#), "{}", noted.out);
    assert!(noted.out.contains("pool.c"), "{}", noted.out);
    assert_eq!(lint(&["--deny", "FP0501"], "store").code, Some(1));
    assert_eq!(lint(&["--deny", "FP0501", "--fail-on", "never"], "store").code, Some(0));

    let intended = "[[suppress]]\nrule = 'FP0501'\nfunction = 'main'\nreason = 'old processors'\n";
    fs::write(sandbox.path("s.toml"), intended).unwrap();
    let suppressed = lint(&["--deny", "FP0501", "--suppressions", "s.toml"], "store");
    assert_eq!(suppressed.code, Some(0), "{}", suppressed.err);
    assert!(suppressed.out.contains(r#""suppressed":1"#), "{}", suppressed.out);

    lint(&[], "nothing").golden("nothing-to-lint");
    lint(&[], "crash").expect(0, &["killed by a signal", "not judged"]);
    let endless = "fn rule() { #{ id: \"MY1\", title: \"t\" } }\nfn store(e) { loop { } }";
    fs::write(sandbox.path("endless.rhai"), endless).unwrap();
    lint(&["--rules", "endless.rhai"], "store").golden("endless-rule-at-a-store");
}
