//! Golden tests of the formats, on findings with everything and with next to nothing.

use std::fs;
use std::path::Path;

use finding::failure::{BrokenPromise, CrashFailure, NamedStore, Remedy, Repair};
use finding::finding::{CallPath, Class, Finding, FindingId, Location, Role, Title};
use finding::note::{Note, OperationGroup};
use finding::severity::Severity;
use report::baseline::Baseline;
use report::human::{Human, Summary};
use report::json::{self, CrashSummary};
use report::junit;
use report::sarif::{self, RuleText, Run};
use serde_json::Value;
use trace::event::{EventId, ThreadId};
use verdict::crash_point::{CrashPoint, PointKind};
use verdict::position::CrashPosition;
use verdict::symptom::{AtCrash, OperationName, Symptom};

const SOURCE: &str = "\
#include \"pm.h\"

void put(struct entry *entry, uint64_t value)
{
\tentry->value = value;
\tpersist(&entry->key);
}
";

fn location(role: Role, file: Option<&str>, line: u32, function: &str) -> Location {
    Location {
        role,
        file: file.map(str::to_owned),
        line: file.map(|_| line),
        function: Some(function.to_owned()),
        module: "kv".to_owned(),
        address: 0x1234,
    }
}

fn finding(rule: &str, severity: Severity, title: &str, locations: Vec<Location>, paths: Vec<CallPath>) -> Finding {
    Finding {
        id: FindingId::new(rule, &locations[0]),
        rule: rule.to_owned(),
        class: Class::Durability,
        severity,
        title: Title::Rule(title.to_owned()),
        locations,
        count: paths.iter().map(|path| path.count).sum(),
        paths,
        first: EventId(42),
        thread: None,
        also: Vec::new(),
        failure: None,
        notes: Vec::new(),
        replay: None,
    }
}

/// Of all a note can hold what formats have to escape.
fn awkward() -> Note {
    let group = OperationGroup {
        word: "put & \"get\"".to_owned(),
        through: vec!["grow<T>".to_owned()],
        times: 2,
        first: "put <a>".to_owned(),
    };
    Note::SeenIn { groups: vec![group], left_out: 1 }
}

/// What a power failure broke, with everything.
fn broken() -> Finding {
    let store = |role, line, name: &str, event| NamedStore {
        location: location(role, Some("put.c"), line, "put"),
        name: Some(name.to_owned()),
        event: EventId(event),
        thread: ThreadId(0),
        thread_runs: None,
        bytes: None,
    };
    let (missing, present) = (store(Role::Missing, 5, "entry->value", 10), store(Role::Present, 6, "entry->key", 11));
    let sides = vec![missing.location.clone(), present.location.clone()];
    let paths = vec![CallPath { count: 3, frames: vec![missing.location.clone()] }];
    let promise = BrokenPromise::Ordered { first: Some(missing.clone()), second: Some(present.clone()) };
    let operation =
        |number, text: &str| OperationName { number: Some(number), text: text.to_owned(), word: "get".to_owned() };
    let crash =
        AtCrash { position: CrashPosition::During(14), operation: Some(operation(14, "put 5 9")), window: false };
    let symptom = Symptom::WrongAnswer {
        operation: Some(operation(15, "get 5")),
        got: Some("7".to_owned()),
        expected: vec![Some("9".to_owned()), None],
        crash,
    };
    Finding {
        class: Class::Ordering,
        title: Title::Broken { promise: Box::new(promise), during_recovery: false },
        failure: Some(Box::new(CrashFailure {
            symptom,
            crash_point: CrashPoint { event: EventId(12), operation: Some(14), kind: PointKind::Fence },
            dirty_lines: 2,
            repair: Some(Repair {
                insert: Remedy::FlushAndFence,
                after: missing.location.clone(),
                name: missing.name.clone(),
                bytes: missing.bytes.clone(),
                before: Some(present.location.clone()),
            }),
            missing: vec![missing],
            present: vec![present],
            recovery_from: None,
        })),
        replay: Some("fencepost replay 1234".to_owned()),
        ..finding("FP0602", Severity::Error, "", sides, paths)
    }
}

fn findings() -> Vec<Finding> {
    let store = location(Role::Store, Some("put.c"), 5, "put");
    let flush = location(Role::Flush, Some("put.c"), 6, "put");
    let main = location(Role::Store, Some("main.c"), 10, "main");
    let mut library = location(Role::Library, None, 0, "pmem_persist");
    library.module = "libpmem.so.1".to_owned();
    let unknown = location(Role::Flush, None, 0, "flush_all");
    vec![
        finding(
            "FP0101",
            Severity::Error,
            "this store is never made durable",
            vec![store.clone(), flush],
            vec![
                CallPath { count: 7, frames: vec![store.clone(), main.clone()] },
                CallPath { count: 1, frames: vec![store] },
            ],
        ),
        finding(
            "FP0201",
            Severity::Performance,
            "this flush has nothing to do",
            vec![unknown.clone(), library],
            vec![CallPath { count: 1, frames: vec![unknown] }],
        ),
    ]
}

#[test]
fn human() {
    let folder = std::env::temp_dir().join(format!("fencepost-report-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("put.c"), SOURCE).unwrap();
    let mut human = Human::new(false, vec![folder.clone()]);
    let findings = findings();
    let mut text: String = findings.iter().map(|finding| human.finding(finding) + "\n\n").collect();
    text.push_str(&human.summary(&findings, &Summary { suppressed: 2, events: 1000, ..Summary::default() }));
    fs::remove_dir_all(&folder).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn nothing_found() {
    let human = Human::new(false, Vec::new());
    insta::assert_snapshot!(human.summary(&[], &Summary { events: 7, ..Summary::default() }), @"nothing found in 7 events");
    let open = Summary { events: 7, open: true, ..Summary::default() };
    insta::assert_snapshot!(human.summary(&[], &open), @"failures, but no time to find their cause, in 7 events");
}

#[test]
fn json_lines() {
    let findings = findings();
    let mut lines: Vec<String> = findings.iter().map(json::finding).collect();
    lines.push(json::summary(&findings, &Summary { suppressed: 2, events: 1000, ..Summary::default() }));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn json_of_a_power_failure() {
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&serde_json::from_str::<Value>(&json::finding(&broken())).unwrap()).unwrap()
    );
}

#[test]
fn human_of_a_power_failure() {
    insta::assert_snapshot!(Human::new(false, Vec::new()).finding(&broken()));
}

#[test]
fn sarif_has_the_fields_of_a_power_failure() {
    let document: Value = serde_json::from_str(&sarif_of(&[broken()])).unwrap();
    crate::sarif_schema::check(&document);
    let failure = &document["runs"][0]["results"][0]["properties"]["failure"];
    assert_eq!(failure["symptom"]["kind"], "wrong-answer");
    assert_eq!(failure["crash_point"], serde_json::json!({ "event": 12, "operation": 14, "kind": "fence" }));
    assert_eq!(failure["repair"]["insert"], "flush-and-fence");
    assert_eq!((&failure["missing"][0]["name"], &failure["missing"][0]["event"]), (&"entry->value".into(), &10.into()));
}

#[test]
fn what_is_known_is_not_new() {
    let human = Human::new(false, Vec::new());
    let known = |known| human.summary(&[], &Summary { known: Some(known), events: 1, ..Summary::default() });
    assert_eq!(
        (known(2).as_str(), known(0).as_str()),
        ("nothing new (2 known) in 1 event", "nothing found in 1 event")
    );
}

/// What SARIF says of [`findings`], and of one that was made to be awkward.
fn sarif_document() -> String {
    let mut findings = findings();
    findings[0].notes = vec![awkward()];
    findings[0].replay = Some("fencepost replay 1234".to_owned());
    // The same lines at another address: SARIF shows no address where it has the line.
    let mut again = findings[0].paths[1].clone();
    again.frames[0].address += 8;
    findings[0].paths.push(again);
    let far = location(Role::Recovery, Some("/elsewhere/a b.c"), 0, "recover");
    findings.push(finding("MY0001", Severity::Note, "a rule of one's own", vec![far], Vec::new()));
    sarif_of(&findings)
}

fn sarif_of(findings: &[Finding]) -> String {
    let rule = |id: &str, name: &str, page: &str| RuleText {
        id: id.to_owned(),
        name: name.to_owned(),
        title: format!("what {name} is about"),
        page: page.to_owned(),
    };
    let crash = CrashSummary { states_possible: "18446744073709551616".to_owned(), ..CrashSummary::default() };
    sarif::document(
        findings,
        &Run {
            version: "1.2.3",
            arguments: &["check".to_owned(), "--".to_owned(), "./kv".to_owned()],
            exit_code: 1,
            folder: Path::new("/home/me/kv"),
            recorded_in: Path::new("/home/me/kv/src"),
            rules: &[
                rule("FP0101", "store-not-durable", "# FP0101: store-not-durable\n"),
                rule("FP0102", "not-used", ""),
                rule("FP0201", "needless-flush", ""),
            ],
            notes: &["one finding could not be confirmed".to_owned()],
            suppressed: 2,
            baseline: None,
            events: 1000,
            crash: Some(&crash),
        },
    )
}

#[test]
fn sarif() {
    insta::assert_snapshot!(sarif_document());
}

#[test]
fn sarif_keeps_to_the_schema() {
    let document: Value = serde_json::from_str(&sarif_document()).unwrap();
    crate::sarif_schema::check(&document);
    assert_eq!(document["runs"][0]["results"].as_array().unwrap().len(), 3);
    assert_eq!(document["runs"][0]["results"][0]["stacks"].as_array().unwrap().len(), 2);
}

#[test]
fn sarif_of_nothing_keeps_to_the_schema() {
    let run = Run {
        version: "1.2.3",
        arguments: &[],
        exit_code: 0,
        folder: Path::new("/"),
        recorded_in: Path::new(""),
        rules: &[],
        notes: &[],
        suppressed: 0,
        baseline: None,
        events: 7,
        crash: None,
    };
    let document: Value = serde_json::from_str(&sarif::document(&[], &run)).unwrap();
    crate::sarif_schema::check(&document);
    // A run that was made and found nothing has empty results; without any it was not made (§3.14.23).
    assert_eq!(document["runs"][0]["results"], serde_json::json!([]));
}

fn junit_run() -> junit::Run<'static> {
    let folder = Path::new("/home/me/kv");
    junit::Run { folder, recorded_in: folder, fails: &|_| true, baseline: None, notes: &[] }
}

#[test]
fn junit() {
    let mut findings = findings();
    findings[0].notes = vec![awkward()];
    let mut human = Human::new(false, Vec::new());
    let notes = ["only the recovery's verdict was checked".to_owned()];
    let run = junit::Run { fails: &|finding| finding.severity >= Severity::Error, notes: &notes, ..junit_run() };
    insta::assert_snapshot!(junit::document(&findings, &run, &mut human));
}

#[test]
fn junit_says_what_is_known_and_where_the_source_is() {
    let mut findings = findings();
    findings.truncate(1);
    findings[0].locations[0].file = Some("/home/me/kv/src/put.c".to_owned());
    let lines = format!("{}\n{}\n", json::finding(&findings[0]), json::summary(&findings, &Summary::default()));
    let mut baseline = Baseline::parse(&lines).unwrap();
    baseline.compare(&findings);
    let run = junit::Run { fails: &|_| false, baseline: Some(&baseline), ..junit_run() };
    let text = junit::document(&findings, &run, &mut Human::new(false, Vec::new()));
    assert!(
        text.contains(" file=\"src/put.c\" ") && text.contains("<skipped message=\"known (baseline)\"/>"),
        "{text}"
    );
}

#[test]
fn junit_passes_if_no_finding_fails() {
    let mut human = Human::new(false, Vec::new());
    insta::assert_snapshot!(junit::document(&[], &junit_run(), &mut human));
    let lenient = junit::document(&findings(), &junit::Run { fails: &|_| false, ..junit_run() }, &mut human);
    assert!(lenient.contains("tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"2\""), "{lenient}");
    assert!(lenient.contains("name=\"no failing findings\"/>") && !lenient.contains("<failure"), "{lenient}");
}
