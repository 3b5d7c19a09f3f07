//! What counts as a wrong answer, beyond a single crash: losses without any crash, crashes of recoveries, listings in another order. And
//! crashes that are left out.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cli_support::{Ran, Sandbox};

/// A sandbox with a program of `tests/programs` in it.
fn sandbox(program: &str, flags: &[&str], operations: &str, readback: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(program);
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-mclwb"]).args(flags).arg("-o").arg(sandbox.path("program")).arg(source);
    assert!(cc.status().expect("cc is installed").success());
    fs::write(sandbox.path("ops"), operations).expect("writable");
    fs::write(sandbox.path("readback"), readback).expect("writable");
    sandbox
}

fn check(sandbox: &Sandbox, options: &[&str]) -> Ran {
    let _ = fs::remove_file(sandbox.path("pool"));
    let given = ["check", "--no-lint", "--jobs", "1", "--ops", "ops", "--readback", "readback"];
    sandbox.run_limited(&[&given, options, &["--", "./program", "pool"]].concat())
}

/// Findings and summary are on standard output, notes on standard error.
#[track_caller]
fn expect(ran: &Ran, code: i32, words: &[&str]) {
    let said = format!("{}{}", ran.out, ran.err);
    assert_eq!(ran.code, Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

const COUNTED: &str = "a\na\na\n";
const QUICK: [&str; 2] = ["--strategy", "program-order,guaranteed-only,visible:64"];

#[test]
fn a_loss_without_a_crash_is_a_finding() {
    let lossy = sandbox("counter.c", &["-DLOSSY"], COUNTED, "n\n");
    expect(&check(&lossy, &QUICK), 1, &["error[FP0605]", "`n` returned `0`; expected `3`", "fencepost replay"]);
    expect(&check(&sandbox("counter.c", &[], COUNTED, "n\n"), &QUICK), 0, &["nothing found"]);
}

#[test]
fn recoveries_are_crashed_with_operations_on_standard_input() {
    let again = [&QUICK[..], &["--again"]].concat();
    let right = check(&sandbox("counter.c", &[], COUNTED, "n\n"), &again);
    expect(&right, 0, &["simulated a second power failure in"]);
    assert!(!right.err.contains(": 0 states"), "{}", right.err);
    let twice = sandbox("counter.c", &["-DTWICE"], COUNTED, "n\n");
    expect(&check(&twice, &QUICK), 0, &["nothing found"]);
    expect(&check(&twice, &again), 1, &["during recovery", "`n` returned"]);
}

#[test]
fn a_default_check_crashes_a_few_recoveries() {
    let twice = sandbox("counter.c", &["-DTWICE"], COUNTED, "n\n");
    expect(&check(&twice, &[]), 1, &["during recovery"]);
    expect(&check(&sandbox("counter.c", &[], COUNTED, "n\n"), &[]), 0, &["nothing found"]);
}

#[test]
fn another_order_of_a_listing_is_a_warning_unless_somebody_says_what_it_means() {
    let (operations, readback) = ("i 7\ni 3\ni 5\n", "l\ng 3\ng 5\ng 7\n");
    let right = sandbox("listing.c", &[], operations, readback);
    expect(&check(&right, &QUICK), 0, &["warning[FP0606]", "--readback-order any"]);
    expect(&check(&right, &[&QUICK[..], &["--readback-order", "any"]].concat()), 0, &["nothing found"]);
    expect(&check(&right, &[&QUICK[..], &["--readback-order", "fixed"]].concat()), 1, &["error[FP06"]);
    let bug = sandbox("listing.c", &["-DBUG"], operations, readback);
    expect(&check(&bug, &[&QUICK[..], &["--readback-order", "any"]].concat()), 1, &["error[FP06"]);
}

#[test]
fn a_listing_on_one_line_has_items_between_separators() {
    let (operations, readback) = ("i 7\ni 3\ni 5\n", "l\ng 3\ng 5\ng 7\n");
    let commas = [&QUICK[..], &["--readback-separator", ","]].concat();
    let any = [&commas[..], &["--readback-order", "any"]].concat();
    let right = sandbox("listing.c", &["-DONE_LINE"], operations, readback);
    expect(&check(&right, &commas), 0, &["warning[FP0606]", "--readback-order any"]);
    expect(&check(&right, &any), 0, &["nothing found"]);
    expect(&check(&right, &[&commas[..], &["--readback-order", "fixed"]].concat()), 1, &["error[FP06"]);
    let bug = sandbox("listing.c", &["-DONE_LINE", "-DBUG"], operations, readback);
    expect(&check(&bug, &any), 1, &["error[FP06"]);
}

#[test]
fn a_program_may_put_other_files_behind_its_descriptors() {
    let bug = check(&sandbox("descriptors.c", &["-DBUG"], COUNTED, "n\nn\n"), &QUICK);
    expect(&bug, 1, &["error[FP0601]", "`n` returned `the value is 2`; expected `the value is 3`"]);
    expect(&check(&sandbox("descriptors.c", &[], COUNTED, "n\nn\n"), &QUICK), 0, &["nothing found"]);
}

#[test]
fn bugs_that_show_late_are_found_with_more_operations_after_the_crash() {
    let operations = "a\n".repeat(100);
    let late = sandbox("late.c", &[], &operations, "n\n");
    let few = ["--strategy", "program-order,guaranteed-only,few-lines:1"];
    expect(&check(&late, &few), 0, &["nothing found"]);
    expect(&check(&late, &[]), 1, &["error[FP06", "p->limit", "returned `full`"]);
    expect(&check(&sandbox("late.c", &["-DFLUSHED"], &operations, "n\n"), &[]), 0, &["nothing found"]);
}

#[test]
fn what_only_a_locked_instruction_makes_durable_is_a_warning() {
    let checked = |flags: &[&str], options: &[&str]| {
        let sandbox = sandbox("swapped.c", flags, "", "");
        let given = ["check", "--no-lint", "--recover", "./program pool check"];
        sandbox.run_limited(&[&given, options, &["--", "./program", "pool"]].concat())
    };
    let relies = checked(&[], &[]);
    expect(&relies, 0, &["warning[FP0607]", "p->value", "completed only by a locked instruction in `publish`"]);
    assert!(!relies.out.contains("error["), "{}", relies.out);
    expect(&checked(&["-DFENCED"], &[]), 0, &["nothing found"]);
    expect(&checked(&[], &["--strict-fences"]), 1, &["error[FP0602]"]);
}

#[test]
fn crashes_before_the_operations_can_be_left_out() {
    let setup = sandbox("first.c", &["-DSETUP"], COUNTED, "n\n");
    expect(&check(&setup, &QUICK), 1, &["error[FP06", "`n` returned"]);
    expect(&check(&setup, &[&QUICK[..], &["--after-setup"]].concat()), 0, &["nothing found"]);
    // What the operations do is looked at all the same.
    let first = sandbox("first.c", &["-DFIRST"], COUNTED, "n\n");
    expect(&check(&first, &[&QUICK[..], &["--after-setup"]].concat()), 1, &["error[FP06", "p->count"]);
}

#[test]
fn crashes_in_the_first_operations_can_be_left_out() {
    let first = sandbox("first.c", &["-DFIRST"], COUNTED, "n\n");
    for (skipped, code, says) in [("0", 1, "error[FP06"), ("1", 1, "error[FP06"), ("2", 0, "nothing found")] {
        expect(&check(&first, &[&QUICK[..], &["--skip-operations", skipped]].concat()), code, &[says]);
    }
}

/// What failed is not passed over in silence, though nothing about it can be confirmed.
#[test]
fn a_failure_whose_cause_takes_too_long_is_no_clean_end() {
    let checked = |budget| {
        let sandbox = sandbox("stuck.c", &[], "", "");
        let given = ["check", "--no-lint", "--recover", "./program pool check", "--timeout", "5s", "--budget", budget];
        sandbox.run_limited(&[&given[..], &["--", "./program", "pool"]].concat())
    };
    // A fast machine may still confirm it; it is never a clean end.
    let open = checked("6s");
    if open.code != Some(1) {
        expect(&open, 5, &["failures, but no time to find their cause", "no time was left to", "a longer --budget"]);
        assert!(open.out.contains("1 failure"), "{}", open.out);
    }
    expect(&checked("60s"), 1, &["error[FP0602]", "recovery was not done after 5.0 s"]);
}
