//! SARIF 2.1.0 (OASIS standard, 27 March 2020), for code hosts and editors: one document with one run.
//!
//! The section numbers in comments are those of the standard. Optional properties that are not known are left out: the
//! schema allows no `null`.

use std::path::Path;

use finding::finding::{CallPath, Finding, Location};
use finding::severity::Severity;
use serde_json::{Map, Value, json};

use crate::baseline::Baseline;
use crate::json::{self, CrashSummary};
use crate::number::counted;
use crate::place::Places;
use crate::words;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// What relative URIs are relative to: the folder in which fencepost was started.
const BASE: &str = "SRCROOT";
/// The name of a finding's id.
pub(crate) const FINGERPRINT: &str = "fencepostFinding/v1";
/// At most so many call paths and frames of each are written; `occurrenceCount` covers all.
const PATHS: usize = 3;
const FRAMES: usize = 32;

/// What is known of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    pub id: String,
    pub name: String,
    pub title: String,
    /// The explanation, in Markdown; empty if there is none.
    pub page: String,
}

/// What was run, and where.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub version: &'a str,
    /// The arguments of fencepost itself.
    pub arguments: &'a [String],
    pub exit_code: u8,
    /// Where fencepost was started: URIs inside it are relative.
    pub folder: &'a Path,
    /// Where the recorded program was started: relative source paths are relative to it.
    pub recorded_in: &'a Path,
    /// Those that results may refer to; a rule that is not here is described by its finding.
    pub rules: &'a [RuleText],
    /// Remarks on the run as a whole.
    pub notes: &'a [String],
    pub suppressed: u64,
    /// Findings that are not new.
    pub baseline: Option<&'a Baseline>,
    pub events: u64,
    /// Of a search for failing crash states.
    pub crash: Option<&'a CrashSummary>,
}

/// The document.
pub fn document(findings: &[Finding], run: &Run<'_>) -> String {
    let writer = Writer { places: Places::new(run.folder, run.recorded_in), baseline: run.baseline };
    let used = used_rules(findings);
    let results: Vec<Value> = findings
        .iter()
        .map(|finding| {
            let index = used.iter().position(|first| first.rule == finding.rule);
            writer.result(finding, index.expect("every finding's rule is among those used"))
        })
        .collect();
    let rules: Vec<Value> = used.iter().map(|first| rule(first, run.rules)).collect();
    let mut properties = json!({ "suppressed": run.suppressed, "events": run.events });
    if let Some(crash) = run.crash {
        properties["crash"] = serde_json::to_value(crash).expect("strings and numbers are always JSON");
    }
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "fencepost",
                "version": run.version,
                "semanticVersion": run.version,
                "rules": rules,
            }},
            "originalUriBaseIds": { BASE: { "uri": writer.places.base() } },
            "invocations": [invocation(run, &writer.places)],
            "results": results,
            "properties": properties,
        }],
    });
    serde_json::to_string_pretty(&document).expect("strings and numbers are always JSON")
}

/// The first finding of each rule, in order of the rules.
fn used_rules(findings: &[Finding]) -> Vec<&Finding> {
    let mut used: Vec<&Finding> = findings.iter().collect();
    used.sort_by(|a, b| a.rule.cmp(&b.rule));
    used.dedup_by(|a, b| a.rule == b.rule);
    used
}

/// §3.49. Code hosts show `help` beside a result, and take `text` if they cannot show Markdown.
fn rule(first: &Finding, known: &[RuleText]) -> Value {
    let known = known.iter().find(|rule| rule.id == first.rule);
    let title = known.map_or_else(|| words::title(first), |rule| rule.title.clone());
    let mut value = json!({
        "id": first.rule,
        "shortDescription": { "text": title },
        "properties": { "tags": [first.class.name()] },
    });
    if let Some(rule) = known {
        value["name"] = json!(rule.name);
        if !rule.page.is_empty() {
            value["help"] = json!({ "text": rule.page, "markdown": rule.page });
        }
    }
    value
}

/// §3.20.
fn invocation(run: &Run<'_>, places: &Places) -> Value {
    let notes: Vec<Value> =
        run.notes.iter().map(|note| json!({ "level": "note", "message": { "text": note } })).collect();
    json!({
        "executionSuccessful": true,
        "exitCode": run.exit_code,
        "arguments": run.arguments,
        "workingDirectory": { "uri": places.base() },
        "toolExecutionNotifications": notes,
    })
}

struct Writer<'a> {
    places: Places,
    baseline: Option<&'a Baseline>,
}

impl Writer<'_> {
    /// §3.27.
    fn result(&self, finding: &Finding, rule_index: usize) -> Value {
        let title = words::title(finding);
        let mut text = title.clone();
        for note in words::notes(finding) {
            text.push_str("\n\n");
            text.push_str(&note);
        }
        let others = finding.locations.iter().enumerate().skip(1);
        let related: Vec<Value> = others
            .map(|(number, other)| {
                let mut value = self.location(other);
                value["id"] = json!(number);
                value["message"] = json!({ "text": other.role.name() });
                value
            })
            .collect();
        let mut properties = json!({
            "title": title,
            "class": finding.class.name(),
            "severity": finding.severity.name(),
            "count": finding.count,
            "firstEvent": finding.first.0,
        });
        if let Some(failure) = json::failure(finding) {
            properties["failure"] = serde_json::to_value(failure).expect("strings and numbers are always JSON");
        }
        if !finding.also.is_empty() {
            properties["also"] = serde_json::to_value(json::also(finding)).expect("strings are always JSON");
        }
        if let Some(thread) = &finding.thread {
            properties["thread"] = json!({ "id": thread.id.0, "runs": thread.runs });
        }
        if let Some(replay) = &finding.replay {
            properties["replay"] = json!(replay);
        }
        let mut value = json!({
            "ruleId": finding.rule,
            "ruleIndex": rule_index,
            "level": level(finding.severity),
            "message": { "text": text },
            "locations": [self.location(finding.guilty())],
            "partialFingerprints": { FINGERPRINT: finding.id.0 },
            "properties": properties,
        });
        // §3.27.24.
        if let Some(baseline) = self.baseline {
            value["baselineState"] = json!(if baseline.knows(finding) { "unchanged" } else { "new" });
        }
        if finding.count > 0 {
            value["occurrenceCount"] = json!(finding.count);
        }
        if !related.is_empty() {
            value["relatedLocations"] = json!(related);
        }
        if !finding.paths.is_empty() {
            let mut stacks: Vec<Value> = Vec::new();
            for stack in finding.paths.iter().take(PATHS).map(|path| self.stack(path)) {
                // Call paths that differ only in addresses are the same here, and the schema wants each item once.
                if !stacks.contains(&stack) {
                    stacks.push(stack);
                }
            }
            value["stacks"] = json!(stacks);
        }
        value
    }

    /// §3.28: a place in the source, or, where that is not known, in a module (§3.32).
    fn location(&self, location: &Location) -> Value {
        let mut value = Map::new();
        let physical = match &location.file {
            Some(file) => {
                let place = self.places.of(file);
                let mut artifact = json!({ "uri": place.uri });
                if place.is_inside {
                    artifact["uriBaseId"] = json!(BASE);
                }
                let mut physical = json!({ "artifactLocation": artifact });
                // Lines are counted from one (§3.30.5); debug information says 0 for "none in particular".
                if let Some(line) = location.line.filter(|&line| line > 0) {
                    physical["region"] = json!({ "startLine": line });
                }
                physical
            }
            None => {
                let name = format!("{}+{:#x}", location.module, location.address);
                json!({ "address": { "fullyQualifiedName": name, "kind": "instruction" } })
            }
        };
        value.insert("physicalLocation".to_owned(), physical);
        if let Some(function) = &location.function {
            let full = format!("{}!{function}", location.module);
            let logical = json!([{ "name": function, "fullyQualifiedName": full, "kind": "function" }]);
            value.insert("logicalLocations".to_owned(), logical);
        }
        Value::Object(value)
    }

    /// §3.44.
    fn stack(&self, path: &CallPath) -> Value {
        let frames: Vec<Value> = path
            .frames
            .iter()
            .take(FRAMES)
            .map(|frame| json!({ "location": self.location(frame), "module": frame.module }))
            .collect();
        json!({ "message": { "text": format!("called {}", counted(path.count, "time")) }, "frames": frames })
    }
}

/// §3.27.10 has no word for waste.
fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Performance | Severity::Warning => "warning",
        Severity::Note => "note",
    }
}
