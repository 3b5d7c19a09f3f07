//! What machines read keeps to its schema: real output against `docs/schema`, and SARIF against the official schema.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::crash_support::Case;
use crate::schema_support::Schema;
use serde_json::{Value, json};

fn schema(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name);
    serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON")
}

/// Every line keeps to the schema, and the schema names everything in it.
#[track_caller]
fn assert_lines(name: &str, text: &str) -> usize {
    let root = schema(name);
    let schema = Schema { root: &root, closed: true };
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let errors = schema.errors(&value);
        assert!(errors.is_empty(), "{line}\n{errors:#?}");
    }
    text.lines().count()
}

/// A run with findings of both kinds: a bug, and a remark on `clflush`.
fn check(case: &Case, options: &[&str]) -> String {
    let _ = fs::remove_file(case.sandbox.path(&case.pool));
    let recovery = case.recovery("check");
    let mut arguments =
        vec!["check", "--jobs", "1", "--severity", "FP0501=note", "-o", "trace", "--recover", &recovery];
    arguments.extend(options);
    arguments.extend(["--", "./records", &case.pool, "run", "1"]);
    let ran = case.run(&arguments);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    ran.out
}

#[test]
fn json_lines_keep_to_their_schemas() {
    let case = Case::new();
    let checked = check(&case, &["--message-format", "json", "--write-baseline", "known"]);
    assert!(assert_lines("findings.json", &checked) >= 3, "{checked}");
    assert_lines("findings.json", &check(&case, &["--message-format", "json", "--baseline", "known"]));
    assert_lines("findings.json", &fs::read_to_string(case.sandbox.path("known")).expect("written"));
    let lint = ["lint", "--severity", "FP0501=note", "--message-format", "json", "trace"];
    assert!(assert_lines("findings.json", &case.run(&lint).out) >= 2);
    assert_eq!(
        assert_lines("trace-stat.json", &case.run(&["trace", "stat", "--message-format", "json", "trace"]).out),
        1
    );
    let verify = case.run(&["trace", "verify", "--message-format", "json", "trace"]).out;
    assert_eq!(assert_lines("trace-verify.json", &verify), 1);
    assert!(assert_lines("doctor.json", &case.run(&["doctor", "--message-format", "json"]).out) >= 8);
}

#[test]
fn a_line_that_is_wrong_is_noticed() {
    let root = schema("findings.json");
    let told = |value: Value| Schema { root: &root, closed: true }.errors(&value).join("\n");
    let right = json!({"type": "finding", "id": "a", "rule": "FP0101", "class": "ordering", "severity": "error", "title": "t",
        "locations": [{"role": "store", "file": null, "line": 7, "function": "f"}], "count": 1});
    assert_eq!(told(right.clone()), "");
    let changed = |path: &str, value: Value| {
        let mut wrong = right.clone();
        *wrong.pointer_mut(path).expect("there") = value;
        told(wrong)
    };
    for (path, value, words) in [
        ("/class", json!("x"), "breaks enum"),
        ("/count", json!(-1), "breaks minimum"),
        ("/count", json!("1"), "breaks type"),
        ("/id", json!(""), "breaks minLength"),
        ("/locations", json!([]), "breaks minItems"),
        ("/locations/0/role", json!(null), "/locations/0/role"),
        ("/locations/0", json!({"role": "store"}), "file is missing"),
        ("/type", json!("summary"), "0 of oneOf fit"),
    ] {
        let told = changed(path, value);
        assert!(told.contains(words), "{path}: {told}");
    }
    let mut more = right.clone();
    more["colour"] = json!("red");
    assert!(told(more).contains("does not name colour"));
}

#[test]
fn sarif_keeps_to_the_official_schema() {
    let path = official_sarif_schema();
    let root: Value = serde_json::from_str(&fs::read_to_string(&path).expect("readable")).expect("JSON");
    let schema = Schema { root: &root, closed: false };
    let case = Case::new();
    let first = check(&case, &["--message-format", "sarif"]);
    fs::write(case.sandbox.path("known"), &first).expect("writable");
    let second = check(&case, &["--message-format", "sarif", "--baseline", "known"]);
    for text in [&first, &second] {
        let document: Value = serde_json::from_str(text).expect("JSON");
        assert!(document["runs"][0]["results"].as_array().is_some_and(|results| results.len() >= 2), "{text}");
        assert_eq!(schema.errors(&document), Vec::<String>::new());
    }
    // The schema is the real one: it forbids what SARIF does not have.
    let mut wrong: Value = serde_json::from_str(&first).expect("JSON");
    wrong["runs"][0]["results"][0]["colour"] = json!("red");
    assert!(schema.errors(&wrong).join("").contains("colour is not allowed"));
}

/// The schema is in the package `serde-sarif`, which is never built: the manifest asks for it on no platform.
fn official_sarif_schema() -> PathBuf {
    let mut metadata = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    metadata.args(["metadata", "--format-version", "1", "--locked"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = metadata.output().expect("cargo starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cannot find the package serde-sarif; `cargo fetch` gets it: {told}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list");
    let manifest = packages.iter().find(|package| package["name"] == "serde-sarif").expect("in the lock file");
    Path::new(manifest["manifest_path"].as_str().expect("text")).with_file_name("src").join("schema.json")
}
