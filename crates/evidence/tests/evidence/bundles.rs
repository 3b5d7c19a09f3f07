//! What goes into a bundle comes out of it, whatever names the files have.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crash::assignment::Assignment;
use crash::walk::{Rules, Walk};
use evidence::bundle::{Bundle, BundleError, Contents, Expectation};
use finding::failure::{BrokenPromise, CrashFailure, Remedy, Repair};
use finding::finding::{Class, Finding, FindingId, Location, Role, Title};
use finding::note::Note;
use finding::severity::Severity;
use recover::command::{Command, Input};
use recover::limits::Limits;
use recover::slot::RecordedNames;
use trace::EventId;
use verdict::crash_point::{CrashPoint, PointKind};
use verdict::symptom::{Failure, Party, Symptom};

use crate::traces::{Recorded, clwb, fence, record, store};

fn finding(id: &str) -> Finding {
    let location =
        Location { role: Role::Missing, file: None, line: None, function: None, module: "program".into(), address: 1 };
    Finding {
        id: FindingId(id.into()),
        rule: "FP0602".into(),
        class: Class::Ordering,
        severity: Severity::Error,
        title: Title::Broken { promise: Box::new(BrokenPromise::Durable { store: None }), during_recovery: false },
        locations: vec![location.clone()],
        count: 1,
        paths: Vec::new(),
        first: EventId(2),
        thread: None,
        also: Vec::new(),
        failure: Some(Box::new(CrashFailure {
            symptom: Symptom::Failed { by: Party::Recovery, how: Failure::Exit { code: 1, complaint: None } },
            crash_point: CrashPoint { event: EventId(2), operation: Some(7), kind: PointKind::Flush },
            dirty_lines: 2,
            missing: Vec::new(),
            present: Vec::new(),
            repair: Some(Repair { insert: Remedy::Fence, after: location, name: None, bytes: None, before: None }),
            recovery_from: None,
        })),
        notes: vec![Note::NotNeeded { states: 3 }],
        replay: None,
    }
}

fn no_text() -> OsString {
    OsStr::from_bytes(b"caf\xe9 \xff").to_owned()
}

fn command(stdin: Input) -> Command {
    Command {
        program: PathBuf::from("bin").join(no_text()),
        args: vec!["check".into(), no_text(), "".into()],
        env: vec![("PATH".into(), "/bin".into()), (no_text(), no_text())],
        dir: PathBuf::from("/home").join(no_text()),
        stdin,
    }
}

/// Writes a bundle of the second word without the first.
fn write(recorded: &Recorded, id: &str, checker: Option<&Command>) -> (PathBuf, Limits, Expectation) {
    let folder = recorded.folder.path().join("bundles");
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
    walk.advance_to(EventId(2)).unwrap();
    let view = walk.view();
    let mut assignment = Assignment::guaranteed(&view);
    assignment.0[1] = Assignment::everything(&view).0[1];
    let image = view.image(&assignment.state(&view)).unwrap();
    let limits = Limits { wall: Duration::from_millis(1234), memory: 77, processes: 5, ..Limits::default() };
    let expectation = Expectation { exit_codes: vec![0, 3], patterns: vec!["lost$".into()], ..Expectation::default() };
    let contents = Contents {
        finding: &finding(id),
        recovery: &command(Input::Bytes(b"a\0b".into())),
        checker,
        expectation: &expectation,
        limits: &limits,
        pools: &[PathBuf::from("/pmem").join(no_text())],
        files: RecordedNames { names: &[], folders: &[] },
    };
    contents.write(&folder, &image).unwrap();
    (folder, limits, expectation)
}

fn recorded() -> Recorded {
    record(&[store(1, 1, 7), store(2, 2, 9), clwb(3, 1), clwb(4, 2), fence(5)])
}

#[test]
fn a_bundle_is_read_as_it_was_written() {
    let recorded = recorded();
    let checker = command(Input::Empty);
    let (folder, limits, expectation) = write(&recorded, "1a2b3c4d", Some(&checker));
    let bundle = Bundle::read(&folder, "1a2b").unwrap();
    assert_eq!(bundle.finding, finding("1a2b3c4d"));
    assert_eq!(bundle.recovery, command(Input::Bytes(b"a\0b".into())));
    assert_eq!(bundle.checker, Some(checker));
    assert_eq!((bundle.limits, bundle.expectation), (limits, expectation));
    let [(path, image)] = &bundle.pools[..] else { panic!("{:?}", bundle.pools) };
    assert_eq!(*path, PathBuf::from("/pmem").join(no_text()));
    let mut expected = vec![0; 4096];
    expected[128] = 9;
    assert_eq!(fs::read(image).unwrap(), expected);
}

#[test]
fn an_older_bundle_of_the_finding_gives_way() {
    let recorded = recorded();
    let (folder, ..) = write(&recorded, "1a2b3c4d", None);
    fs::write(folder.join("1a2b3c4d/pool-0"), [0xff; 9000]).unwrap();
    write(&recorded, "1a2b3c4d", None);
    let bundle = Bundle::read(&folder, "1a2b3c4d").unwrap();
    assert_eq!(bundle.checker, None);
    let image = fs::read(&bundle.pools[0].1).unwrap();
    assert_eq!((image.len(), image.iter().filter(|&&byte| byte != 0).count()), (4096, 1));
}

#[test]
fn a_bundle_that_is_not_there_or_not_whole_is_an_error() {
    let recorded = recorded();
    let (folder, ..) = write(&recorded, "1a2b3c4d", None);
    write(&recorded, "1a2b9999", None);
    let missing = |id: &str| matches!(Bundle::read(&folder, id), Err(BundleError::Missing { .. }));
    // Neither of two is meant.
    assert!(missing("1a2b") && missing("ffff") && missing(""));
    assert!(matches!(Bundle::read(&folder.join("none"), "1a"), Err(BundleError::Missing { .. })));
    assert_eq!(Bundle::read(&folder, "1a2b9").unwrap().finding.id.0, "1a2b9999");
    fs::write(folder.join("1a2b9999/finding.json"), "{").unwrap();
    let error = Bundle::read(&folder, "1a2b9").unwrap_err();
    assert!(matches!(&error, BundleError::Damaged { .. }));
    assert!(error.to_string().contains("1a2b9999"), "{error}");
}
