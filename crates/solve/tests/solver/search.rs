//! The search over paths, on real programs: "every branch tried" is true, PM code comes first, and an argument that was cut short can grow again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use solve::explore::{Explorer, Strategy};
use solve::input::Shape;
use solve::run::Runner;
use solve::session::{Ended, Limits, Session};
use solve::solver::{Embedded, Stages};

fn built(name: &str, folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
    let out = folder.join(name);
    let mut cc = Command::new("cc");
    assert!(cc.args(["-O1", "-g", "-o"]).arg(&out).arg(source).status().expect("cc is installed").success());
    out
}

/// A session on this program, with these bytes on standard input, all symbolic.
fn session(program: &Path, input: &[u8], strategy: Strategy, folder: &Path) -> Session {
    let mut shape = Shape::default();
    shape.add_free(input);
    let command: Vec<OsString> = vec![program.into(), folder.join("pool").into()];
    started(&command, shape, strategy, folder)
}

fn started(command: &[OsString], shape: Shape, strategy: Strategy, folder: &Path) -> Session {
    let runner = Runner::new(command, shape, &[], &[], folder, Duration::from_secs(60)).expect("it can be run");
    let stages = Stages::new(vec![Box::new(Embedded::default())], Duration::from_secs(20));
    let limits = Limits { time: Duration::from_secs(600), runs: 2000 };
    Session::new(runner, Explorer::new(strategy, stages, 1, Vec::new()), limits, None)
}

#[test]
fn every_branch_tried_means_every_path_of_every_input() {
    let folder = tempfile::tempdir().expect("writable");
    let program = built("two_bytes", folder.path());
    let all = Command::new(&program).arg("all").output().expect("it runs").stdout;
    let expected: BTreeSet<u64> = String::from_utf8_lossy(&all).lines().filter_map(|line| line.parse().ok()).collect();
    assert!(expected.len() > 30, "{expected:?}");
    let mut session = session(&program, b"11", Strategy::PmAware, folder.path());
    let mut seen = BTreeSet::new();
    let pool = folder.path().join("pool");
    let ended = session.run(|_| {
        let content = std::fs::read(&pool).expect("the program made it");
        seen.insert(u64::from_le_bytes(content[..8].try_into().expect("eight bytes")));
        true
    });
    assert_eq!(ended.expect("it runs"), Ended::Exhausted);
    assert_eq!(session.gaps(), [], "nothing was left out");
    assert_eq!(seen, expected);
}

/// Runs until PM instructions beyond those of the first run were executed.
fn runs_to_new_pm(program: &Path, strategy: Strategy) -> u64 {
    let folder = tempfile::tempdir().expect("writable");
    let mut session = session(program, b"1111111111111111", strategy, folder.path());
    let ended = session.run(|found| found.number == 1 || found.news.pm == 0);
    assert_eq!(ended.expect("it runs"), Ended::Asked, "{strategy:?} did not get there");
    session.totals.runs
}

#[test]
fn branches_that_lead_to_pm_code_come_first() {
    let folder = tempfile::tempdir().expect("writable");
    let program = built("ways", folder.path());
    let (aware, breadth) = (runs_to_new_pm(&program, Strategy::PmAware), runs_to_new_pm(&program, Strategy::Breadth));
    // The switch's range, then the entry of its table; behind that an indirect call that never ran.
    assert!(aware <= 3, "{aware} runs");
    assert!(breadth > aware, "{breadth} runs in order, {aware} by weight");
}

#[test]
fn an_argument_that_was_cut_short_grows_again() {
    let folder = tempfile::tempdir().expect("writable");
    let program = built("argument", folder.path());
    let command: Vec<OsString> = vec![program.into(), folder.path().join("pool").into(), "{word:sym:6}".into()];
    for seed in [*b"\0\0\0\0\0\0", *b"f\0xxxx", *b"111111"] {
        let mut shape = Shape::default();
        shape.add_arguments(&command).expect("a template");
        shape.seed = seed.to_vec();
        let mut session = started(&command, shape, Strategy::PmAware, folder.path());
        let mut last = Vec::new();
        let ended = session.run(|found| {
            last = found.input.to_vec();
            found.ran.pm.is_empty()
        });
        assert_eq!(ended.expect("it runs"), Ended::Asked, "from {seed:?}: the last input was {last:?}");
        assert_eq!(last[..5], *b"five\0");
    }
}
