//! Findings that are right but intended: a file that says which, and why.
//!
//! ```toml
//! [[suppress]]
//! rule = "FP0301"
//! file = "*/stats.c"
//! reason = "counters are rebuilt at start"
//! ```
//!
//! An entry matches a finding if all that it states does: `id`, `rule`, `file`, `line`, `function` of the guilty line, and
//! `library`, the library function that was called there. `rule`, `file`, `function` and `library` are patterns.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::finding::{Finding, Role};
use crate::glob;

/// One entry of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suppression {
    pub id: Option<String>,
    pub rule: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub function: Option<String>,
    pub library: Option<String>,
    #[serde(default)]
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    suppress: Vec<Suppression>,
}

#[derive(Debug, thiserror::Error)]
pub enum SuppressError {
    #[error("cannot read the suppressions file {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Parse { path: PathBuf, source: Box<toml::de::Error> },
    #[error("{}: suppression {number} has no reason; say why the finding is intended: reason = \"...\"", path.display())]
    NoReason { path: PathBuf, number: usize },
    #[error(
        "{}: suppression {number} (\"{reason}\") would hide every finding; add rule, id, file, line, function or library",
        path.display()
    )]
    Everything { path: PathBuf, number: usize, reason: String },
}

/// The entries of one file, with how often each was used.
#[derive(Debug, Default)]
pub struct Suppressions {
    entries: Vec<(Suppression, u64)>,
}

impl Suppressions {
    pub fn read(path: &Path) -> Result<Suppressions, SuppressError> {
        let text = fs::read_to_string(path).map_err(|source| SuppressError::Read { path: path.to_owned(), source })?;
        Suppressions::parse(&text, path)
    }

    /// `path` is for messages only.
    pub fn parse(text: &str, path: &Path) -> Result<Suppressions, SuppressError> {
        let path = path.to_owned();
        let file: File = match toml::from_str(text) {
            Ok(file) => file,
            Err(source) => return Err(SuppressError::Parse { path, source: Box::new(source) }),
        };
        for (at, entry) in file.suppress.iter().enumerate() {
            let number = at + 1;
            if entry.reason.trim().is_empty() {
                return Err(SuppressError::NoReason { path, number });
            }
            if (Suppression { reason: String::new(), ..entry.clone() }) == Suppression::default() {
                return Err(SuppressError::Everything { path, number, reason: entry.reason.clone() });
            }
        }
        Ok(Suppressions { entries: file.suppress.into_iter().map(|entry| (entry, 0)).collect() })
    }

    /// Removes the suppressed findings; says how many there were.
    pub fn apply(&mut self, findings: &mut Vec<Finding>) -> u64 {
        let before = findings.len();
        findings.retain(|finding| match self.entries.iter_mut().find(|(entry, _)| entry.matches(finding)) {
            Some((_, used)) => {
                *used += 1;
                false
            }
            None => true,
        });
        (before - findings.len()) as u64
    }

    /// Entries that matched nothing: their cause may be gone.
    pub fn unused(&self) -> impl Iterator<Item = &Suppression> {
        self.entries.iter().filter(|(_, used)| *used == 0).map(|(entry, _)| entry)
    }
}

impl Suppression {
    fn matches(&self, finding: &Finding) -> bool {
        let guilty = finding.guilty();
        let fits = |pattern: &Option<String>, text: Option<&str>| {
            pattern.as_ref().is_none_or(|pattern| text.is_some_and(|text| glob::matches(pattern, text)))
        };
        let library = finding.locations.iter().find(|location| location.role == Role::Library);
        fits(&self.id, Some(&finding.id.0))
            && fits(&self.rule, Some(&finding.rule))
            && fits(&self.file, guilty.file.as_deref())
            && fits(&self.function, guilty.function.as_deref())
            && fits(&self.library, library.and_then(|library| library.function.as_deref()))
            && self.line.is_none_or(|line| guilty.line == Some(line))
    }
}

#[cfg(test)]
mod tests {
    use trace::event::EventId;

    use super::*;
    use crate::finding::{Class, FindingId, Location, Title};
    use crate::severity::Severity;

    fn finding(rule: &str, file: &str, line: u32) -> Finding {
        let location = Location {
            role: Role::Store,
            file: Some(file.to_owned()),
            line: Some(line),
            function: Some("put".to_owned()),
            module: "app".to_owned(),
            address: 0,
        };
        Finding {
            id: FindingId::new(rule, &location),
            rule: rule.to_owned(),
            class: Class::Durability,
            severity: Severity::Error,
            title: Title::Rule(String::new()),
            locations: vec![location],
            count: 1,
            paths: Vec::new(),
            first: EventId(0),
            thread: None,
            also: Vec::new(),
            failure: None,
            notes: Vec::new(),
            replay: None,
        }
    }

    fn parse(text: &str) -> Result<Suppressions, String> {
        Suppressions::parse(text, Path::new("s.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn an_entry_hides_what_it_describes_and_nothing_else() {
        let mut list = parse(
            "[[suppress]]\nrule = 'FP03*'\nfile = '*/stats.c'\nreason = 'rebuilt at start'\n\
             [[suppress]]\nline = 99\nreason = 'gone'\n",
        )
        .unwrap();
        let mut findings = vec![
            finding("FP0301", "/a/stats.c", 3),
            finding("FP0101", "/a/stats.c", 3),
            finding("FP0301", "/a/b.c", 3),
        ];
        assert_eq!(list.apply(&mut findings), 1);
        assert_eq!(findings.iter().map(|f| f.rule.as_str()).collect::<Vec<_>>(), ["FP0101", "FP0301"]);
        assert_eq!(list.unused().map(|entry| entry.reason.as_str()).collect::<Vec<_>>(), ["gone"]);
    }

    #[test]
    fn a_reason_and_a_restriction_are_mandatory() {
        assert!(parse("[[suppress]]\nrule = 'FP0101'\n").unwrap_err().contains("suppression 1 has no reason"));
        assert!(parse("[[suppress]]\nreason = 'x'\n").unwrap_err().contains("would hide every finding"));
        assert!(parse("[[suppress]]\nruel = 'x'\nreason = 'y'\n").unwrap_err().contains("ruel"));
    }
}
