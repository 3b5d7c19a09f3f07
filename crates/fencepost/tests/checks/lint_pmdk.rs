//! Debian's libpmemobj map examples under `fencepost lint`: with the suppressions of `docs/lint-pmdk.toml` nothing is left but the
//! defects that `docs/lint-pmdk.md` lists. (With fewer operations than there, so not all of them occur.)

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use targets::{TargetError, pmdk};

/// Rule, file and line of each finding.
type Places = BTreeSet<(String, String, u64)>;

const OPERATIONS: u32 = 1_500;

/// Lints a map; returns rule, file and line of what is left. None if PMDK is not installed.
fn findings(map: &str) -> Option<Places> {
    let suppressions = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lint-pmdk.toml");
    let (findings, summary) = lint(map, &["--library-findings", "--suppressions", suppressions])?;
    assert!(summary["suppressed"].as_u64() > Some(5), "{summary}");
    assert_eq!(summary["inside_libraries"], 0);
    Some(findings)
}

/// With these options: what was found, and the summary.
fn lint(map: &str, options: &[&str]) -> Option<(Places, Value)> {
    let space = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lint-pmdk");
    let mapcli = match pmdk::build_mapcli(&space) {
        Err(error @ TargetError::NoPmdk { .. }) => {
            targets::skip(error);
            return None;
        }
        built => built.expect("mapcli builds"),
    };
    let folder = tempfile::tempdir().expect("temporary directory");
    let workload = folder.path().join("workload");
    fs::write(&workload, pmdk::workload(OPERATIONS)).expect("the workload is written");
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "300"]).arg(env!("CARGO_BIN_EXE_fencepost"));
    command.args(["lint", "--message-format", "json"]).args(options);
    command.arg("--").arg(mapcli).args([map, "pool", "1"]).current_dir(folder.path());
    command.stdin(File::open(&workload).expect("the workload is there"));
    let output = command.output().expect("timeout starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    // The program's own output is there as well, and need not end with a line.
    let values = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(&line[line.find("{\"")?..]).ok());
    let (findings, others): (Vec<Value>, Vec<Value>) = values.partition(|value| value["type"] == "finding");
    assert_eq!(others.len(), 1, "one summary: {stdout}");
    let place = |finding: &Value| {
        let guilty = &finding["locations"][0];
        let file = guilty["file"].as_str().and_then(|file| file.rsplit('/').next()).unwrap_or("?");
        let rule = finding["rule"].as_str().unwrap_or("?");
        (rule.to_owned(), file.to_owned(), guilty["line"].as_u64().unwrap_or(0))
    };
    Some((findings.iter().map(place).collect(), others[0].clone()))
}

#[test]
fn what_the_library_does_on_its_own_account_is_one_number() {
    let Some((shown, summary)) = lint("ctree", &[]) else { return };
    let count = summary["inside_libraries"].as_u64().unwrap_or(0);
    assert!(count > 3, "{summary}");
    assert!(shown.iter().all(|(rule, ..)| rule != "FP0204"), "{shown:?}");
    let Some((all, _)) = lint("ctree", &["--library-findings"]) else { return };
    assert!(all.iter().any(|(rule, ..)| rule == "FP0204") && all.len() > shown.len(), "{all:?}");
}

/// Nothing but `known` is left, and the `certain` ones are.
#[track_caller]
fn check(map: &str, file: &str, certain: &[(&str, u64)], known: &[(&str, u64)]) {
    let Some(found) = findings(map) else { return };
    let named = |list: &[(&str, u64)]| -> Places {
        list.iter().map(|(rule, line)| ((*rule).to_owned(), file.to_owned(), *line)).collect()
    };
    let (certain, known) = (named(certain), named(known));
    let missing: Vec<_> = certain.difference(&found).collect();
    let extra: Vec<_> = found.iter().filter(|place| !certain.contains(*place) && !known.contains(*place)).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing: {missing:?}; not in docs/lint-pmdk.md: {extra:?}");
}

#[test]
fn btree() {
    let known = [("FP0401", 147), ("FP0401", 309), ("FP0401", 335), ("FP0401", 359), ("FP0401", 373)];
    check("btree", "btree_map.c", &[("FP0401", 249), ("FP0201", 287), ("FP0201", 512)], &known);
}

#[test]
fn rbtree() {
    let certain = [("FP0401", 166), ("FP0401", 167), ("FP0401", 200), ("FP0401", 226), ("FP0401", 255)];
    let known = [176, 331, 332, 333, 354, 398, 399, 401].map(|line| ("FP0401", line));
    check("rbtree", "rbtree_map.c", &certain, &known);
}

#[test]
fn ctree() {
    check("ctree", "ctree_map.c", &[], &[]);
}

#[test]
fn hashmap_tx() {
    check("hashmap_tx", "hashmap_tx.c", &[("FP0401", 61)], &[]);
}

#[test]
fn hashmap_atomic() {
    check("hashmap_atomic", "hashmap_atomic.c", &[("FP0201", 91), ("FP0201", 115)], &[]);
}

#[test]
fn skiplist() {
    check("skiplist", "skiplist_map.c", &[], &[]);
}

#[test]
fn rtree() {
    check("rtree", "rtree_map.c", &[("FP0201", 449)], &[]);
}
