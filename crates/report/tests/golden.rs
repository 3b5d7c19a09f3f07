//! Golden tests of the formats, on findings with everything and with next to nothing.

use std::fs;

use finding::finding::{CallPath, Class, Finding, FindingId, Location, Role};
use finding::severity::Severity;
use report::human::{Human, Summary};
use report::json;
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
    text.push_str(&human.summary(&findings, &Summary { suppressed: 2, events: 1000 }));
    fs::remove_dir_all(&folder).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn nothing_found() {
    let human = Human::new(false, Vec::new());
    insta::assert_snapshot!(human.summary(&[], &Summary { suppressed: 0, events: 7 }), @"nothing found in 7 events");
}

#[test]
fn json_lines() {
    let findings = findings();
    let mut lines: Vec<String> = findings.iter().map(json::finding).collect();
    lines.push(json::summary(&findings, &Summary { suppressed: 2, events: 1000 }));
    insta::assert_snapshot!(lines.join("\n"));
}
