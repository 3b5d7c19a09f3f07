//! JSON Lines: one object per finding, then one summary.
//!
//! ```json
//! {"type":"finding","id":"…","rule":"FP0101","class":"durability","severity":"error","title":"…",
//!  "locations":[{"role":"store","file":"…","line":7,"function":"…"}],"count":3}
//! {"type":"summary","version":1,"findings":1,"error":1,"performance":0,"warning":0,"note":0,"suppressed":0,"events":123}
//! ```
//!
//! The first location is the guilty one. What is not known is `null`. `docs/schema/findings.json` is the contract.

use finding::finding::{Finding, Location};
use finding::severity::Severity;
use serde::{Deserialize, Serialize};

use crate::baseline::Baseline;
use crate::human::Summary;

/// Counts up when a program that reads the lines would have to be changed; new fields do not count.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct JsonFinding<'a> {
    r#type: &'static str,
    id: &'a str,
    rule: &'a str,
    class: &'static str,
    severity: &'static str,
    title: &'a str,
    locations: Vec<JsonLocation<'a>>,
    count: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<&'a str>,
    /// `known` or `new`, beside a baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'static str>,
}

#[derive(Serialize)]
struct JsonLocation<'a> {
    role: &'static str,
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonSummary {
    r#type: &'static str,
    version: u32,
    findings: usize,
    error: usize,
    performance: usize,
    warning: usize,
    note: usize,
    suppressed: u64,
    /// How many of the findings the baseline has.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<u64>,
    events: u64,
}

/// One finding, on one line.
pub fn finding(finding: &Finding) -> String {
    finding_against(finding, None)
}

/// As [`finding`], with what a baseline says of it.
pub fn finding_against(finding: &Finding, baseline: Option<&Baseline>) -> String {
    line(&JsonFinding {
        r#type: "finding",
        id: &finding.id.0,
        rule: &finding.rule,
        class: finding.class.name(),
        severity: finding.severity.name(),
        title: &finding.title,
        locations: finding.locations.iter().map(location).collect(),
        count: finding.count,
        notes: finding.notes.iter().map(String::as_str).collect(),
        replay: finding.replay.as_deref(),
        baseline: baseline.map(|baseline| if baseline.knows(finding) { "known" } else { "new" }),
    })
}

fn location(location: &Location) -> JsonLocation<'_> {
    JsonLocation {
        role: location.role.name(),
        file: location.file.as_deref(),
        line: location.line,
        function: location.function.as_deref(),
    }
}

/// The last line.
pub fn summary(findings: &[Finding], summary: &Summary) -> String {
    line(&counts(findings, summary))
}

fn counts(findings: &[Finding], summary: &Summary) -> JsonSummary {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    JsonSummary {
        r#type: "summary",
        version: VERSION,
        findings: findings.len(),
        error: count(Severity::Error),
        performance: count(Severity::Performance),
        warning: count(Severity::Warning),
        note: count(Severity::Note),
        suppressed: summary.suppressed,
        known: summary.known,
        events: summary.events,
    }
}

/// What a search for failing crash states covered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashSummary {
    pub crash_points: u64,
    /// Those with different call paths.
    pub failure_points: u64,
    pub points_wanted: u64,
    pub points_decided: u64,
    /// Exact, as a decimal number: it may have hundreds of digits.
    pub states_possible: String,
    pub states_decided: u64,
    pub states_failing: u64,
    pub recovery_runs: u64,
    pub runs_saved: u64,
    pub complete: bool,
    /// What judged the recoveries: `recovery`, `checker`, `answers`.
    #[serde(default)]
    pub oracles: Vec<String>,
}

#[derive(Serialize)]
struct JsonCrashSummary<'a> {
    #[serde(flatten)]
    summary: JsonSummary,
    #[serde(flatten)]
    crash: &'a CrashSummary,
}

/// The last line of `check` and `crash`.
pub fn crash_summary(findings: &[Finding], summary: &Summary, crash: &CrashSummary) -> String {
    line(&JsonCrashSummary { summary: counts(findings, summary), crash })
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings and numbers are always JSON")
}
