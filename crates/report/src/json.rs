//! JSON Lines: one object per finding, then one summary.
//!
//! ```json
//! {"type":"finding","id":"…","rule":"FP0101","class":"durability","severity":"error","title":"…",
//!  "locations":[{"role":"store","file":"…","line":7,"function":"…"}],"count":3}
//! {"type":"summary","findings":1,"error":1,"performance":0,"warning":0,"note":0,"suppressed":0,"events":123}
//! ```
//!
//! The first location is the guilty one. What is not known is `null`.

use finding::finding::{Finding, Location};
use finding::severity::Severity;
use serde_json::{Value, json};

use crate::human::Summary;

/// One finding.
pub fn finding(finding: &Finding) -> Value {
    json!({
        "type": "finding",
        "id": finding.id.0,
        "rule": finding.rule,
        "class": finding.class.name(),
        "severity": finding.severity.name(),
        "title": finding.title,
        "locations": finding.locations.iter().map(location).collect::<Vec<_>>(),
        "count": finding.count,
    })
}

fn location(location: &Location) -> Value {
    json!({
        "role": location.role.name(),
        "file": location.file,
        "line": location.line,
        "function": location.function,
    })
}

/// The last line.
pub fn summary(findings: &[Finding], summary: &Summary) -> Value {
    let mut object = json!({ "type": "summary", "findings": findings.len() });
    for severity in Severity::ALL {
        object[severity.name()] = findings.iter().filter(|finding| finding.severity == severity).count().into();
    }
    object["suppressed"] = summary.suppressed.into();
    object["events"] = summary.events.into();
    object
}
