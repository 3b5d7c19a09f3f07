//! Findings that are known already: what an earlier run printed as JSON Lines or SARIF, read back.
//!
//! Findings are compared by their ids: rule and guilty line. Everything else in the file is ignored, so that the output of a
//! run serves as it is.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use finding::finding::Finding;
use serde_json::Value;

use crate::sarif::FINGERPRINT;

/// The ids of known findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    ids: BTreeSet<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    #[error("cannot read the baseline {}: {source}; --write-baseline makes one", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "the baseline {} is neither JSON Lines nor SARIF of fencepost ({why}); --write-baseline makes one",
        path.display()
    )]
    Format { path: PathBuf, why: String },
}

impl Baseline {
    pub fn read(path: &Path) -> Result<Baseline, BaselineError> {
        let text = fs::read_to_string(path).map_err(|source| BaselineError::Read { path: path.to_owned(), source })?;
        Baseline::parse(&text).map_err(|why| BaselineError::Format { path: path.to_owned(), why })
    }

    /// Says why the text is no baseline.
    pub fn parse(text: &str) -> Result<Baseline, String> {
        match serde_json::from_str::<Value>(text) {
            Ok(document) if document.get("runs").is_some() => from_sarif(&document),
            _ => from_lines(text),
        }
    }

    pub fn knows(&self, finding: &Finding) -> bool {
        self.ids.contains(&finding.id.0)
    }

    /// How many of its findings are not among these.
    pub fn gone(&self, findings: &[Finding]) -> usize {
        self.ids.iter().filter(|id| !findings.iter().any(|finding| finding.id.0 == **id)).count()
    }
}

fn from_sarif(document: &Value) -> Result<Baseline, String> {
    let mut ids = BTreeSet::new();
    for run in document["runs"].as_array().ok_or("`runs` is no list")? {
        for result in run["results"].as_array().into_iter().flatten() {
            let id = result["partialFingerprints"][FINGERPRINT].as_str();
            ids.insert(id.ok_or_else(|| format!("a result has no fingerprint `{FINGERPRINT}`"))?.to_owned());
        }
    }
    Ok(Baseline { ids })
}

/// The last line must be a summary: what was cut off would make old findings look new.
fn from_lines(text: &str) -> Result<Baseline, String> {
    let mut ids = BTreeSet::new();
    let mut ended = false;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
        ended = value["type"] == "summary";
        if value["type"] == "finding" {
            let id = value["id"].as_str().ok_or_else(|| format!("line {}: the finding has no id", number + 1))?;
            ids.insert(id.to_owned());
        }
    }
    if ended { Ok(Baseline { ids }) } else { Err("there is no summary at its end".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = r#"{"type":"summary","findings":1}"#;

    fn ids(text: &str) -> Result<Vec<String>, String> {
        Baseline::parse(text).map(|baseline| baseline.ids.into_iter().collect())
    }

    #[test]
    fn both_formats_are_read() {
        let lines = format!("{}\n{SUMMARY}\n", r#"{"type":"finding","id":"0a1b2c3d","rule":"FP0101"}"#);
        assert_eq!(ids(&lines), Ok(vec!["0a1b2c3d".to_owned()]));
        let sarif = format!(r#"{{"runs":[{{"results":[{{"partialFingerprints":{{"{FINGERPRINT}":"ff"}}}}]}}]}}"#);
        assert_eq!(ids(&sarif), Ok(vec!["ff".to_owned()]));
        assert_eq!(ids(SUMMARY), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_baseline_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "no summary"),
            ("{\"type\":\"finding\",\"id\":\"a\"}\n", "no summary"),
            ("error[FP0101]: text", "line 1"),
            ("{\"type\":\"finding\"}\n{\"type\":\"summary\"}", "line 1: the finding has no id"),
            ("{\"runs\":[{\"results\":[{}]}]}", "no fingerprint"),
            ("{\"runs\":7}", "no list"),
        ] {
            let told = ids(text).expect_err(text);
            assert!(told.contains(why), "{text}: {told}");
        }
    }
}
