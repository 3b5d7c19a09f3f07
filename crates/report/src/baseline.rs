//! Findings that are known already: what an earlier run printed as JSON Lines or SARIF, read back.
//!
//! A finding is known if the file has its id: the same rule and guilty line. Ids change when lines move, or when the sources lie in
//! another folder, and that must not make old findings new. So each entry whose id was not met also stands for one finding that
//! looks the same: the same rule, words, file name and function, whatever the numbers. And what a power failure brings to light can be told
//! as another class, or with other stores of one fence, beside another bug: an entry that was still not met stands for one failure with the same
//! guilty line, or with stores that are all its own. Everything else in the file is ignored, so that the output of a run serves as it is.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use finding::finding::{Finding, Location};
use serde_json::Value;

use crate::sarif::FINGERPRINT;
use crate::words;

/// Known findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    entries: Vec<BaselineEntry>,
    /// Ids of the present run's findings that are known.
    known: BTreeSet<String>,
    /// How many of these are told in another way.
    retold: usize,
    gone: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct BaselineEntry {
    id: String,
    /// Of what other rules said of the same bug.
    also: Vec<String>,
    looks: Looks,
    failure: Sides,
}

/// The stores of a failure, the guilty one first; empty if the rule is not about the order of stores, or about stores that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sides(Vec<StoredAt>);

impl Sides {
    /// `places` are roles, files, functions and lines.
    fn new<'a>(rule: &str, places: impl Iterator<Item = (&'a str, &'a str, &'a str, Option<u64>)>) -> Sides {
        let of_stores = places.filter(|(role, ..)| FAILURES.contains(&rule) && !NO_STORES.contains(role));
        Sides(of_stores.filter_map(|(_, file, function, line)| StoredAt::new(file, function, line?)).collect())
    }

    fn of(finding: &Finding) -> Sides {
        fn place(location: &Location) -> (&str, &str, &str, Option<u64>) {
            let (file, function) = (location.file.as_deref(), location.function.as_deref());
            (location.role.name(), file.unwrap_or_default(), function.unwrap_or_default(), location.line.map(u64::from))
        }
        Sides::new(&finding.rule, finding.locations.iter().map(place))
    }

    /// The guilty store is the same, or all stores of the one with fewer are stores of the other: one missing fence has several in front of it.
    fn agrees(&self, other: &Sides) -> bool {
        let (fewer, more) = if self.0.len() <= other.0.len() { (self, other) } else { (other, self) };
        let is_within = fewer.0.len() > 1 && fewer.0.iter().all(|store| more.0.contains(store));
        is_within || self.0.first().is_some_and(|guilty| other.0.first() == Some(guilty))
    }
}

/// Ordering and atomicity. A store that is lost in any case is a bug of its own.
const FAILURES: [&str; 2] = ["FP0602", "FP0603"];

/// Roles of places that are no stores.
const NO_STORES: [&str; 2] = ["library", "recovery"];

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredAt {
    file_name: String,
    function: String,
    line: u64,
}

impl StoredAt {
    fn new(file: &str, function: &str, line: u64) -> Option<StoredAt> {
        let file_name = file.rsplit('/').next().filter(|name| !name.is_empty())?.to_owned();
        Some(StoredAt { file_name, function: function.to_owned(), line })
    }
}

/// What stays when lines move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Looks {
    rule: String,
    /// Without its numbers.
    title: String,
    file_name: String,
    function: String,
}

impl Looks {
    fn new(rule: &str, title: &str, file: &str, function: &str) -> Looks {
        Looks {
            rule: rule.to_owned(),
            title: title.chars().filter(|c| !c.is_ascii_digit()).collect(),
            file_name: file.rsplit('/').next().unwrap_or_default().to_owned(),
            function: function.to_owned(),
        }
    }

    fn of(finding: &Finding) -> Looks {
        let guilty = finding.guilty();
        let file = guilty.file.as_deref().unwrap_or_default();
        Looks::new(&finding.rule, &words::title(finding), file, guilty.function.as_deref().unwrap_or_default())
    }
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

    /// Finds out which of the run's findings are known.
    pub fn compare(&mut self, findings: &[Finding]) {
        let mut unmet: Vec<&BaselineEntry> = self.entries.iter().collect();
        self.known.clear();
        let mut others = Vec::new();
        for finding in findings {
            // A bug that another rule, or a power failure, brings to light as well is no new one.
            let is_met =
                |entry: &&BaselineEntry| finding.ids().any(|id| entry.id == id.0 || entry.also.contains(&id.0));
            match unmet.iter().position(is_met) {
                Some(met) => {
                    unmet.swap_remove(met);
                    self.known.insert(finding.id.0.clone());
                }
                None => others.push(finding),
            }
        }
        let mut meet = |others: &mut Vec<&Finding>, is_same: &dyn Fn(&BaselineEntry, &Finding) -> bool| {
            others.retain(|finding| match unmet.iter().position(|entry| is_same(entry, finding)) {
                Some(met) => {
                    unmet.swap_remove(met);
                    self.known.insert(finding.id.0.clone());
                    false
                }
                None => true,
            });
        };
        meet(&mut others, &|entry, finding| entry.looks == Looks::of(finding));
        let before = others.len();
        meet(&mut others, &|entry, finding| entry.failure.agrees(&Sides::of(finding)));
        self.retold = before - others.len();
        self.gone = unmet.len();
    }

    /// Whether a finding is known, of those that were compared.
    pub fn knows(&self, finding: &Finding) -> bool {
        self.known.contains(&finding.id.0)
    }

    /// How many of the known findings are known by their stores only: the file tells them in another way.
    pub fn retold(&self) -> usize {
        self.retold
    }

    /// How many of its findings were not met.
    pub fn gone(&self) -> usize {
        self.gone
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The ids of what other rules said.
fn also(value: &Value) -> Vec<String> {
    let ids = value["also"].as_array().into_iter().flatten().filter_map(|also| also["id"].as_str());
    ids.map(str::to_owned).collect()
}

fn from_sarif(document: &Value) -> Result<Baseline, String> {
    let mut entries = Vec::new();
    for run in document["runs"].as_array().ok_or("`runs` is no list")? {
        for result in run["results"].as_array().into_iter().flatten() {
            let id = result["partialFingerprints"][FINGERPRINT].as_str();
            let id = id.ok_or_else(|| format!("a result has no fingerprint `{FINGERPRINT}`"))?.to_owned();
            let title = text(result, "/properties/title");
            let file = text(result, "/locations/0/physicalLocation/artifactLocation/uri");
            let function = text(result, "/locations/0/logicalLocations/0/name");
            let also = also(&result["properties"]);
            let rule = text(result, "/ruleId");
            let of = |name: &str| result[name].as_array().into_iter().flatten();
            let places = of("locations").chain(of("relatedLocations")).map(|place| {
                let line = place.pointer("/physicalLocation/region/startLine").and_then(Value::as_u64);
                let file = text(place, "/physicalLocation/artifactLocation/uri");
                (text(place, "/message/text"), file, text(place, "/logicalLocations/0/name"), line)
            });
            let failure = Sides::new(rule, places);
            entries.push(BaselineEntry { id, also, looks: Looks::new(rule, title, file, function), failure });
        }
    }
    Ok(Baseline { entries, ..Baseline::default() })
}

/// The last line must be a summary: what was cut off would make old findings look new.
fn from_lines(lines: &str) -> Result<Baseline, String> {
    let mut entries = Vec::new();
    let mut ended = false;
    for (number, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
        ended = value["type"] == "summary";
        if value["type"] == "finding" {
            let id = value["id"].as_str().ok_or_else(|| format!("line {}: the finding has no id", number + 1))?;
            let (file, function) = (text(&value, "/locations/0/file"), text(&value, "/locations/0/function"));
            let rule = text(&value, "/rule");
            let looks = Looks::new(rule, text(&value, "/title"), file, function);
            let places = value["locations"].as_array().into_iter().flatten().map(|place| {
                (text(place, "/role"), text(place, "/file"), text(place, "/function"), place["line"].as_u64())
            });
            let failure = Sides::new(rule, places);
            entries.push(BaselineEntry { id: id.to_owned(), also: also(&value), looks, failure });
        }
    }
    if ended {
        Ok(Baseline { entries, ..Baseline::default() })
    } else {
        Err("there is no summary at its end".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use finding::finding::{Also, Class, FindingId, Role, Title};
    use finding::note::Note;
    use finding::severity::Severity;
    use trace::event::EventId;

    use super::*;
    use crate::human::Summary;
    use crate::json;
    use crate::sarif::{self, Run};

    fn finding(folder: &str, line: u32, function: &str) -> Finding {
        let location = Location {
            role: Role::Store,
            file: Some(format!("{folder}/kv.c")),
            line: Some(line),
            function: Some(function.to_owned()),
            module: "kv".to_owned(),
            address: 0,
        };
        Finding {
            id: FindingId::new("FP0101", &location),
            rule: "FP0101".to_owned(),
            class: Class::Durability,
            severity: Severity::Error,
            title: Title::Rule(format!("`{function}` (kv.c:{line}) is never made durable")),
            locations: vec![location],
            count: 1,
            paths: Vec::new(),
            first: EventId(0),
            thread: None,
            also: Vec::new(),
            failure: None,
            notes: vec![Note::NotNeeded { states: 1 }],
            replay: None,
        }
    }

    /// The same findings in both formats.
    fn printed(findings: &[Finding]) -> [String; 2] {
        let mut lines: Vec<String> = findings.iter().map(json::finding).collect();
        lines.push(json::summary(findings, &Summary::default()));
        let run = Run {
            version: "1.2.3",
            arguments: &[],
            exit_code: 1,
            folder: Path::new("/a"),
            recorded_in: Path::new("/a"),
            rules: &[],
            notes: &[],
            suppressed: 0,
            baseline: None,
            events: 7,
            crash: None,
        };
        [lines.join("\n"), sarif::document(findings, &run)]
    }

    fn known(before: &[Finding], after: &[Finding]) -> (Vec<bool>, usize) {
        let answers = printed(before).map(|text| {
            let mut baseline = Baseline::parse(&text).unwrap();
            baseline.compare(after);
            (after.iter().map(|finding| baseline.knows(finding)).collect::<Vec<bool>>(), baseline.gone())
        });
        let [lines, sarif] = answers;
        assert_eq!(lines, sarif);
        lines
    }

    #[test]
    fn findings_are_known_by_their_ids() {
        let both = [finding("/a", 7, "put"), finding("/a", 9, "get")];
        assert_eq!(known(&both, &both), (vec![true, true], 0));
        assert_eq!(known(&both[..1], &both), (vec![true, false], 0));
        assert_eq!(known(&both, &both[1..]), (vec![true], 1));
        assert_eq!(known(&[], &both), (vec![false, false], 0));
    }

    #[test]
    fn what_became_one_finding_with_another_is_known() {
        let misuse = finding("/a", 7, "put");
        let also = Also { rule: misuse.rule.clone(), id: misuse.id.clone(), title: misuse.title.clone() };
        let failure = Finding {
            id: FindingId("00000001".into()),
            rule: "FP0601".into(),
            also: vec![also],
            ..finding("/a", 3, "set")
        };
        // The power failure came to light later, or the other way round.
        assert_eq!(known(std::slice::from_ref(&misuse), std::slice::from_ref(&failure)), (vec![true], 0));
        assert_eq!(known(&[failure], &[misuse]), (vec![true], 0));
    }

    #[test]
    fn lines_and_folders_may_move() {
        let before = [finding("/a", 7, "put")];
        assert_eq!(known(&before, &[finding("/a", 12, "put")]), (vec![true], 0));
        assert_eq!(known(&before, &[finding("/home/me", 7, "put")]), (vec![true], 0));
        assert_eq!(known(&before, &[finding("/a", 7, "get")]), (vec![true], 0), "the id is that of rule and line");
        assert_eq!(known(&before, &[finding("/a", 12, "get")]), (vec![false], 1));
        // One entry stands for one finding; the one whose id is there comes first.
        assert_eq!(known(&before, &[finding("/a", 5, "put"), finding("/a", 7, "put")]), (vec![false, true], 0));
        assert_eq!(known(&before, &[finding("/a", 5, "put"), finding("/a", 6, "put")]), (vec![true, false], 0));
    }

    #[test]
    fn a_failure_that_another_rule_tells_is_known_by_its_guilty_line() {
        let failure = |rule: &str, line: u32| {
            let one = finding("/a", line, "put");
            Finding { id: FindingId::new(rule, &one.locations[0]), rule: rule.into(), ..one }
        };
        let before = [failure("FP0603", 7)];
        assert_eq!(known(&before, &[failure("FP0602", 7)]), (vec![true], 0));
        assert_eq!(known(&before, &[failure("FP0602", 8)]), (vec![false], 1));
        assert_eq!(known(&before, &[failure("FP0101", 7)]), (vec![false], 1), "misuse is no failure");
        // One entry stands for one finding; its own comes first.
        assert_eq!(known(&before, &[failure("FP0602", 7), failure("FP0603", 7)]), (vec![false, true], 0));
        // One missing fence, of which other stores are named.
        let side = |line: u32| finding("/a", line, "put").locations.remove(0);
        let fence = |lines: [u32; 3]| Finding { locations: lines.map(side).into(), ..failure("FP0602", lines[0]) };
        let title = || Title::Rule("in other words".into());
        let fewer = |lines: [u32; 2]| Finding {
            locations: lines.map(side).into(),
            title: title(),
            ..failure("FP0602", lines[0])
        };
        assert_eq!(known(&[fence([67, 69, 89])], &[fewer([69, 89])]), (vec![true], 0));
        assert_eq!(known(&[fewer([69, 89])], &[fence([67, 69, 89])]), (vec![true], 0));
        assert_eq!(
            known(&[fence([67, 69, 89])], &[fewer([69, 70])]),
            (vec![false], 1),
            "a store in common is not enough"
        );
        let mut baseline = Baseline::parse(&printed(&before)[0]).unwrap();
        baseline.compare(&[failure("FP0602", 7)]);
        assert_eq!((baseline.retold(), baseline.gone()), (1, 0));
        assert_eq!(known(&before, &[failure("FP0601", 7)]), (vec![false], 1), "a store that is lost in any case");
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
            let told = Baseline::parse(text).expect_err(text);
            assert!(told.contains(why), "{text}: {told}");
        }
    }
}
