//! Golden tests of the formats, on findings with everything and with next to nothing.

mod sarif_schema;

use std::fs;
use std::path::Path;

use finding::finding::{CallPath, Class, Finding, FindingId, Location, Role};
use finding::severity::Severity;
use report::human::{Human, Summary};
use report::json::{self, CrashSummary};
use report::junit;
use report::sarif::{self, RuleText, Run};
use serde_json::Value;
use trace::event::EventId;

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
        title: title.to_owned(),
        locations,
        count: paths.iter().map(|path| path.count).sum(),
        paths,
        first: EventId(42),
        notes: Vec::new(),
        replay: None,
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
    text.push_str(&human.summary(&findings, &Summary { suppressed: 2, known: None, events: 1000 }));
    fs::remove_dir_all(&folder).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn nothing_found() {
    let human = Human::new(false, Vec::new());
    insta::assert_snapshot!(human.summary(&[], &Summary { suppressed: 0, known: None, events: 7 }), @"nothing found in 7 events");
}

#[test]
fn json_lines() {
    let findings = findings();
    let mut lines: Vec<String> = findings.iter().map(json::finding).collect();
    lines.push(json::summary(&findings, &Summary { suppressed: 2, known: None, events: 1000 }));
    insta::assert_snapshot!(lines.join("\n"));
}

/// What SARIF says of [`findings`], and of one that was made to be awkward.
fn sarif_document() -> String {
    let mut findings = findings();
    findings[0].notes = vec!["put a `<flush>` & a fence \"here\"".to_owned()];
    findings[0].replay = Some("fencepost replay 1234".to_owned());
    // The same lines at another address: SARIF shows no address where it has the line.
    let mut again = findings[0].paths[1].clone();
    again.frames[0].address += 8;
    findings[0].paths.push(again);
    let far = location(Role::Recovery, Some("/elsewhere/a b.c"), 0, "recover");
    findings.push(finding("MY0001", Severity::Note, "a rule of one's own", vec![far], Vec::new()));
    let rule = |id: &str, name: &str, page: &str| RuleText {
        id: id.to_owned(),
        name: name.to_owned(),
        title: format!("what {name} is about"),
        page: page.to_owned(),
    };
    let crash = CrashSummary { states_possible: "18446744073709551616".to_owned(), ..CrashSummary::default() };
    sarif::document(
        &findings,
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
    sarif_schema::check(&document);
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
    sarif_schema::check(&document);
    // A run that was made and found nothing has empty results; without any it was not made (§3.14.23).
    assert_eq!(document["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn junit() {
    let mut findings = findings();
    findings[0].notes = vec!["put a `<flush>` & a fence \"here\"".to_owned()];
    let mut human = Human::new(false, Vec::new());
    insta::assert_snapshot!(junit::document(
        &findings,
        &|finding| finding.severity >= Severity::Error,
        &["only recovery's verdict was looked at".to_owned()],
        &mut human
    ));
}

#[test]
fn junit_passes_if_no_finding_fails() {
    let mut human = Human::new(false, Vec::new());
    insta::assert_snapshot!(junit::document(&[], &|_| true, &[], &mut human));
    let lenient = junit::document(&findings(), &|_| false, &[], &mut human);
    assert!(lenient.contains("tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"2\""), "{lenient}");
    assert!(lenient.contains("name=\"no failing findings\"/>") && !lenient.contains("<failure"), "{lenient}");
}
