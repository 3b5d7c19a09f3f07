//! JSON Lines: one object per finding, then one summary.
//!
//! ```json
//! {"type":"finding","id":"…","rule":"FP0101","class":"durability","severity":"error","title":"…",
//!  "locations":[{"role":"store","file":"…","line":7,"function":"…"}],"count":3}
//! {"type":"summary","version":1,"findings":1,"error":1,"performance":0,"warning":0,"note":0,"suppressed":0,"inside_libraries":0,"events":123}
//! ```
//!
//! The first location is the guilty one. What is not known is `null`. `docs/schema/findings.json` is the contract.

use finding::failure::{NamedStore, PoolBytes, Remedy};
use finding::finding::{Also, CallPath, Finding, Location};
use finding::note::{Note, OperationGroup};
use finding::severity::Severity;
use serde::{Deserialize, Serialize};
use verdict::crash_point::CrashPoint;
use verdict::symptom::{OperationName, Symptom};

use crate::baseline::Baseline;
use crate::human::Summary;
use crate::words;

/// Counts up when a program that reads the lines would have to be changed; new fields do not count.
const VERSION: u32 = 1;
/// Call paths that are written of one finding; `count` covers all.
const PATHS: usize = 8;

#[derive(Serialize)]
struct JsonFinding<'a> {
    r#type: &'static str,
    id: &'a str,
    rule: &'a str,
    class: &'static str,
    severity: &'static str,
    title: String,
    locations: Vec<JsonLocation<'a>>,
    count: u64,
    /// Where in the trace it happened first.
    first_event: u64,
    /// Whose event that was.
    thread: Option<JsonThread<'a>>,
    /// What other rules said of the same bug.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<JsonAlso<'a>>,
    #[serde(flatten)]
    failure: Option<JsonFailure<'a>>,
    /// Most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    call_paths: Vec<JsonPath<'a>>,
    /// The operations in which it shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    seen_in: Vec<&'a OperationGroup>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_store_of: Option<&'a OperationName>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<&'a str>,
    /// `known` or `new`, beside a baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'static str>,
}

/// What a simulated power failure showed.
#[derive(Serialize)]
pub(crate) struct JsonFailure<'a> {
    symptom: JsonSymptom<'a>,
    crash_point: CrashPoint,
    missing: Vec<JsonStore<'a>>,
    present: Vec<JsonStore<'a>>,
    repair: Option<JsonRepair<'a>>,
    explains_states: u64,
}

#[derive(Serialize)]
struct JsonSymptom<'a> {
    #[serde(flatten)]
    symptom: &'a Symptom,
    /// The same in a sentence.
    text: String,
}

#[derive(Serialize)]
struct JsonThread<'a> {
    id: u32,
    /// The function that it runs.
    runs: Option<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct JsonAlso<'a> {
    rule: &'a str,
    id: &'a str,
    title: String,
}

pub(crate) fn also(finding: &Finding) -> Vec<JsonAlso<'_>> {
    finding
        .also
        .iter()
        .map(|Also { rule, id, title }| JsonAlso { rule, id: &id.0, title: words::title_of(title) })
        .collect()
}

#[derive(Serialize)]
struct JsonStore<'a> {
    #[serde(flatten)]
    location: JsonLocation<'a>,
    /// What is stored to, in the words of the source.
    name: Option<&'a str>,
    event: u64,
    thread: u32,
    thread_runs: Option<&'a str>,
    bytes: Option<JsonBytes<'a>>,
}

#[derive(Serialize)]
struct JsonBytes<'a> {
    pool: &'a str,
    offset: u64,
    len: u64,
}

fn bytes(bytes: &PoolBytes) -> JsonBytes<'_> {
    JsonBytes { pool: &bytes.pool, offset: bytes.offset.0, len: bytes.len }
}

#[derive(Serialize)]
struct JsonRepair<'a> {
    insert: Remedy,
    /// What to flush, in the words of the source, and its bytes.
    name: Option<&'a str>,
    bytes: Option<JsonBytes<'a>>,
    after: JsonLocation<'a>,
    before: Option<JsonLocation<'a>>,
}

#[derive(Serialize)]
struct JsonPath<'a> {
    count: u64,
    frames: Vec<JsonLocation<'a>>,
}

#[derive(Serialize)]
struct JsonLocation<'a> {
    role: &'static str,
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
    module: &'a str,
    address: u64,
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
    /// Remarks on performance wholly inside libraries, which are not among the findings.
    inside_libraries: u64,
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
        title: words::title(finding),
        locations: finding.locations.iter().map(location).collect(),
        count: finding.count,
        first_event: finding.first.0,
        thread: finding.thread.as_ref().map(|thread| JsonThread { id: thread.id.0, runs: thread.runs.as_deref() }),
        also: also(finding),
        failure: failure(finding),
        call_paths: finding.paths.iter().take(PATHS).map(path).collect(),
        seen_in: finding.notes.iter().flat_map(seen_in).collect(),
        lost_store_of: finding.notes.iter().find_map(lost_store_of),
        notes: words::notes(finding),
        replay: finding.replay.as_deref(),
        baseline: baseline.map(|baseline| if baseline.knows(finding) { "known" } else { "new" }),
    })
}

/// None of misuse.
pub(crate) fn failure(finding: &Finding) -> Option<JsonFailure<'_>> {
    let failure = finding.failure.as_deref()?;
    Some(JsonFailure {
        symptom: JsonSymptom { symptom: &failure.symptom, text: words::symptom(&failure.symptom) },
        crash_point: failure.crash_point,
        missing: failure.missing.iter().map(store).collect(),
        present: failure.present.iter().map(store).collect(),
        repair: failure.repair.as_ref().map(|repair| JsonRepair {
            insert: repair.insert,
            name: repair.name.as_deref(),
            bytes: repair.bytes.as_ref().map(bytes),
            after: location(&repair.after),
            before: repair.before.as_ref().map(location),
        }),
        explains_states: finding.count,
    })
}

fn seen_in(note: &Note) -> &[OperationGroup] {
    match note {
        Note::SeenIn { groups, .. } => groups,
        _ => &[],
    }
}

fn lost_store_of(note: &Note) -> Option<&OperationName> {
    match note {
        Note::LostStoreOf { operation } => Some(operation),
        _ => None,
    }
}

fn store(store: &NamedStore) -> JsonStore<'_> {
    JsonStore {
        location: location(&store.location),
        name: store.name.as_deref(),
        event: store.event.0,
        thread: store.thread.0,
        thread_runs: store.thread_runs.as_deref(),
        bytes: store.bytes.as_ref().map(bytes),
    }
}

fn path(path: &CallPath) -> JsonPath<'_> {
    JsonPath { count: path.count, frames: path.frames.iter().map(location).collect() }
}

fn location(location: &Location) -> JsonLocation<'_> {
    JsonLocation {
        role: location.role.name(),
        file: location.file.as_deref(),
        line: location.line,
        function: location.function.as_deref(),
        module: &location.module,
        address: location.address,
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
        inside_libraries: summary.inside_libraries,
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
    /// Further points of which some states were decided.
    #[serde(default)]
    pub points_in_part: u64,
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
