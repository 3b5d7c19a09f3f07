//! Fencepost as a library: the example finds the bug of the demo, leaves its repaired twin alone, and changes nothing of this process.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use check::Request;
use check::run::CheckError;
use record::request::Stream;

#[path = "../examples/harness.rs"]
#[expect(dead_code, reason = "only its `main` is not called")]
mod harness;

/// The program of `fencepost demo`.
fn compiled(folder: &Path, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets/demo/kv.c");
    let program = folder.join("kv");
    let built = Command::new("cc").args(["-O1", "-g"]).args(flags).arg(&source).arg("-o").arg(&program).status();
    assert!(built.expect("cc").success());
    program
}

#[test]
fn the_example_finds_the_bug_and_its_repair() {
    let environment: Vec<_> = env::vars_os().collect();
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), &[]);
    let outcome = harness::check(&program, &folder.path().join("kv.pool")).unwrap();
    let lines: Vec<String> = outcome.findings().map(harness::line).collect();
    assert_eq!(outcome.checked.findings.len(), 1, "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("kv.c:")), "{lines:?}");
    assert!(outcome.checked.coverage.points_finished > 0);
    let bundle = folder.path().join("findings").join(&outcome.checked.findings[0].id.0);
    assert!(bundle.join("finding.json").is_file(), "{}", bundle.display());
    assert_eq!(environment, env::vars_os().collect::<Vec<_>>());

    let repaired = tempfile::tempdir().unwrap();
    let program = compiled(repaired.path(), &["-DREPAIRED"]);
    let outcome = harness::check(&program, &repaired.path().join("kv.pool")).unwrap();
    let lines: Vec<String> = outcome.findings().map(harness::line).collect();
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn errors_are_data() {
    let mut idle = Request::new(["/bin/true"]);
    idle.recording.stdout = Stream::Null;
    assert!(matches!(check::run(idle), Err(CheckError::NoActivity)));
    let missing = check::run(Request::new(["./there-is-no-such-program"]));
    assert!(matches!(missing, Err(CheckError::Record(_))), "{missing:?}");
}
