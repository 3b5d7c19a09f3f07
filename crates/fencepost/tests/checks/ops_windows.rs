//! Operations at the same time: `targets/ops/windows` has a bug that only windows of three show, and a twin that answers in
//! every order.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cli_support::{Ran, Sandbox};

const WINDOWS: &str = "a 1 5\na 2 1 || a 3 2 || a 1 7\nb 3\na 1 1 || a 1 2\na 3 4\n";
const PAIRS: &str = "a 1 5\na 2 1 || a 3 2\nb 3\na 1 1 || a 1 2\na 3 4\n";
const TAIL: &str = "b 1\nb 2\nb 3\n";

fn check(variant: &str, operations: &str) -> Ran {
    let sandbox = Sandbox::new();
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-mclwb", variant, "-I"]).arg(targets.join("ops/include")).arg("-I");
    cc.arg(targets.join("crash/include")).arg("-o").arg(sandbox.path("accounts"));
    assert!(cc.arg(targets.join("ops/windows/accounts.c")).status().expect("cc is installed").success());
    fs::write(sandbox.path("ops"), operations).expect("writable");
    fs::write(sandbox.path("readback"), TAIL).expect("writable");
    let options =
        ["check", "--no-lint", "--jobs", "1", "--ops", "ops", "--readback", "readback", "--window-separator", "||"];
    sandbox.run_limited(&[&options[..], &["--", "./accounts", "pool"]].concat())
}

#[test]
fn every_order_of_a_window_is_right() {
    let twin = check("-DBUG=0", WINDOWS);
    assert_eq!(twin.code, Some(0), "{}{}", twin.out, twin.err);
}

#[test]
fn one_of_three_at_the_same_time_is_lost() {
    let found = check("-DBUG=1", WINDOWS);
    assert_eq!(found.code, Some(1), "{}{}", found.out, found.err);
    assert!(found.out.contains("in `run` (accounts.c:"), "{}", found.out);
    assert!(
        found.out.contains("`b 3`") && found.out.contains("operation 1 (`a 2 1 || a 3 2 || a 1 7`)"),
        "{}",
        found.out
    );
}

#[test]
fn with_two_at_a_time_the_bug_does_not_show() {
    let silent = check("-DBUG=1", PAIRS);
    assert_eq!(silent.code, Some(0), "{}{}", silent.out, silent.err);
}

#[test]
fn windows_that_are_too_large() {
    check("-DBUG=0", "b 1||b 1||b 1||b 1||b 1\n").golden("window-too-large");
}
