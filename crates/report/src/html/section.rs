//! One finding: its words, the guilty stores in their source, call paths, commands.

use std::collections::BTreeMap;

use finding::evidence::{Evidence, Operation};
use finding::failure::CrashFailure;
use finding::finding::{CallPath, Finding, Location, Role};
use finding::source::Excerpt;
use trace::event::EventId;

use super::bytes::{self, DiffView};
use super::escape::{prose, script_json};
use crate::number::{counted, separated};
use crate::words;

/// Call paths that are shown.
const PATHS: usize = 8;
/// Characters of a title in the list of findings.
const SHORT: usize = 120;

#[derive(Debug)]
pub struct SectionView {
    pub id: String,
    pub rule: String,
    pub has_page: bool,
    /// The baseline has it.
    pub is_known: bool,
    /// Of many findings only the first are unfolded.
    pub is_open: bool,
    pub severity: &'static str,
    pub class: &'static str,
    /// HTML.
    pub title: String,
    pub short: String,
    /// The guilty line, short.
    pub at: String,
    /// What the text filter looks at.
    pub words: String,
    pub times: String,
    pub account: String,
    pub trees: Vec<(&'static str, String)>,
    pub blocks: Vec<CodeBlock>,
    pub bare: Vec<BarePlace>,
    pub repair: String,
    /// What other rules say of it.
    pub also: Vec<String>,
    pub notes: Vec<String>,
    pub has_timeline: bool,
    /// JSON for a `script` element.
    pub timeline: String,
    pub diff: Option<DiffView>,
    pub operations: Vec<OperationView>,
    pub paths_title: String,
    pub paths: Vec<PathView>,
    pub paths_left_out: String,
    pub commands: Vec<CommandView>,
}

/// Lines of one file without a gap.
#[derive(Debug)]
pub struct CodeBlock {
    pub file: String,
    pub lines: Vec<CodeLine>,
}

#[derive(Debug)]
pub struct CodeLine {
    pub number: u32,
    pub text: String,
    pub side: &'static str,
    pub label: String,
}

/// A location without source.
#[derive(Debug)]
pub struct BarePlace {
    pub side: &'static str,
    pub label: &'static str,
    pub text: String,
}

#[derive(Debug)]
pub struct OperationView {
    pub number: u64,
    pub text: String,
    pub state: &'static str,
    pub label: &'static str,
}

#[derive(Debug)]
pub struct PathView {
    pub title: String,
    pub frames: Vec<FrameView>,
}

#[derive(Debug)]
pub struct FrameView {
    pub function: String,
    pub place: String,
    /// Not of the guilty line's module.
    pub foreign: bool,
}

#[derive(Debug)]
pub struct CommandView {
    pub text: String,
    pub words: &'static str,
}

/// A finding and what there is to show of it.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    pub finding: &'a Finding,
    pub evidence: Option<&'a Evidence>,
    pub excerpts: &'a [Excerpt],
    /// Paths in it are shown without it.
    pub folder: &'a str,
}

impl Section<'_> {
    pub fn view(&self, has_page: bool, is_known: bool, is_open: bool) -> SectionView {
        let Section { finding, evidence, .. } = *self;
        let failure = finding.failure.as_deref();
        let title = words::title(finding);
        // With evidence the report shows the rest in other ways.
        let notes: Vec<String> = match evidence {
            Some(_) => finding.notes.iter().map(words::note).collect(),
            None => words::notes(finding),
        };
        let (blocks, bare) = self.places();
        let times = match finding.count {
            1 => format!("once, at event {}", separated(finding.first.0)),
            count => format!("{} times, first at event {}", separated(count), separated(finding.first.0)),
        };
        let paths = finding.paths.iter().take(PATHS).map(|path| self.path(path)).collect::<Vec<PathView>>();
        SectionView {
            id: finding.id.0.clone(),
            rule: finding.rule.clone(),
            has_page,
            is_known,
            is_open,
            severity: finding.severity.name(),
            class: finding.class.name(),
            title: prose(&capital(&title)),
            short: prose(&capital(&short(&words::headline(finding)))),
            at: at(finding.guilty()),
            words: self.filter_words(),
            times,
            account: failure.filter(|_| evidence.is_some()).map_or_else(String::new, account),
            trees: failure
                .filter(|_| evidence.is_some())
                .map_or_else(Vec::new, |failure| words::trees(&failure.symptom)),
            blocks,
            bare,
            repair: failure
                .filter(|_| evidence.is_some())
                .and_then(|failure| failure.repair.as_ref())
                .map_or_else(String::new, |repair| prose(&words::repair(repair))),
            also: finding.also.iter().map(|also| prose(&words::also(also))).collect(),
            notes: notes.iter().map(|note| prose(note)).collect(),
            has_timeline: evidence.is_some_and(|evidence| !evidence.timeline.events.is_empty()),
            timeline: evidence.map_or_else(String::new, |evidence| {
                script_json(&serde_json::to_string(&evidence.timeline).expect("plain data is always JSON"))
            }),
            diff: evidence.and_then(|evidence| bytes::view(&evidence.difference)),
            operations: evidence.map_or_else(Vec::new, |evidence| {
                let crash = evidence.timeline.crash;
                evidence.operations.iter().map(|one| operation(one, crash)).collect()
            }),
            paths_title: format!("Call stacks ({})", separated(finding.paths.len() as u64)),
            paths,
            paths_left_out: match finding.paths.len().saturating_sub(PATHS) {
                0 => String::new(),
                more => format!("And {more} more."),
            },
            commands: commands(finding),
        }
    }

    /// What the text filter looks at.
    fn filter_words(&self) -> String {
        let Section { finding, .. } = *self;
        let (title, notes) = (words::title(finding), words::notes(finding));
        let mut words = vec![finding.id.0.as_str(), &finding.rule, finding.class.name(), finding.severity.name()];
        words.push(&title);
        words.extend(notes.iter().map(String::as_str));
        let frames = finding.paths.iter().take(PATHS).flat_map(|path| &path.frames);
        for location in finding.locations.iter().chain(frames) {
            words.extend(location.file.as_deref());
            words.extend(location.function.as_deref());
            words.push(&location.module);
        }
        let mut seen = std::collections::HashSet::new();
        words.retain(|word| seen.insert(*word));
        words.join(" ").to_lowercase()
    }

    /// The locations in their source; without, if there is none.
    fn places(&self) -> (Vec<CodeBlock>, Vec<BarePlace>) {
        let mut files: Vec<&str> = Vec::new();
        let mut bare = Vec::new();
        for (number, location) in self.finding.locations.iter().enumerate() {
            let place = location.file.as_deref().zip(location.line).filter(|_| self.is_shown(number));
            let found = place.filter(|(file, line)| self.has(file, *line));
            match found {
                Some((file, _)) if !files.contains(&file) => files.push(file),
                Some(_) => {}
                None => bare.push(BarePlace {
                    side: side(location.role),
                    label: label(location.role),
                    text: self.place_of(location, true),
                }),
            }
        }
        (files.into_iter().flat_map(|file| self.blocks(file)).collect(), bare)
    }

    /// Whether its source is of help: not that of a library, and of a recovery only where it broke down.
    fn is_shown(&self, number: usize) -> bool {
        let locations = &self.finding.locations;
        match locations[number].role {
            Role::Library => false,
            Role::Recovery => !locations[..number].iter().any(|earlier| earlier.role == Role::Recovery),
            _ => true,
        }
    }

    fn has(&self, file: &str, line: u32) -> bool {
        let holds = |excerpt: &Excerpt| (excerpt.first..excerpt.first + excerpt.lines.len() as u32).contains(&line);
        self.excerpts.iter().any(|excerpt| excerpt.file == file && holds(excerpt))
    }

    /// Excerpts that touch are one.
    fn blocks(&self, file: &str) -> Vec<CodeBlock> {
        let all = self.finding.locations.iter().enumerate();
        let own = all.filter(|(number, location)| location.file.as_deref() == Some(file) && self.is_shown(*number));
        let marked: Vec<&Location> = own.map(|(_, location)| location).collect();
        let mut lines: BTreeMap<u32, &str> = BTreeMap::new();
        for excerpt in self.excerpts.iter().filter(|excerpt| excerpt.file == file) {
            let numbered: Vec<(u32, &str)> = (excerpt.first..).zip(excerpt.lines.iter().map(String::as_str)).collect();
            // Excerpts of other findings are none of ours.
            if numbered.iter().any(|(number, _)| marked.iter().any(|location| location.line == Some(*number))) {
                lines.extend(numbered);
            }
        }
        let indent = lines.values().filter(|text| !text.trim().is_empty()).map(|text| indent(text)).min().unwrap_or(0);
        let mut blocks: Vec<CodeBlock> = Vec::new();
        let mut last = None;
        for (number, text) in lines {
            if last.is_none_or(|last: u32| last + 1 != number) {
                blocks.push(CodeBlock { file: self.shortened(file), lines: Vec::new() });
            }
            last = Some(number);
            let here = marked.iter().find(|location| location.line == Some(number));
            let text = text.get(indent..).unwrap_or(text.trim_start()).replace('\t', "    ");
            let function = here.and_then(|location| location.function.as_deref());
            let label = match (here, function) {
                (Some(location), Some(function)) => format!("{} · {}", label(location.role), short_function(function)),
                (Some(location), None) => label(location.role).to_owned(),
                (None, _) => String::new(),
            };
            let side = here.map_or("", |location| side(location.role));
            blocks.last_mut().expect("just pushed").lines.push(CodeLine { number, text, side, label });
        }
        // The guilty line first, then the others as they stand in the file.
        let guilty = self.finding.guilty().line;
        blocks.sort_by_key(|block| !block.lines.iter().any(|line| Some(line.number) == guilty));
        blocks
    }

    fn path(&self, path: &CallPath) -> PathView {
        let own = &self.finding.guilty().module;
        let frame = |frame: &Location| FrameView {
            function: frame.function.clone().unwrap_or_else(|| "?".to_owned()),
            place: self.place_of(frame, false),
            foreign: frame.module != *own,
        };
        let role = path.frames.first().map_or("", |frame| frame.role.name());
        PathView {
            title: format!("{role}, {}", counted(path.count, "time")),
            frames: path.frames.iter().map(frame).collect(),
        }
    }

    fn place_of(&self, location: &Location, with_function: bool) -> String {
        let place = match (&location.file, location.line) {
            (Some(file), Some(line)) => format!("{}:{line}", self.shortened(file)),
            _ => format!("{}+{:#x}", location.module, location.address),
        };
        match location.function.as_deref().filter(|_| with_function) {
            Some(function) => format!("{function} ({place})"),
            None => place,
        }
    }

    fn shortened(&self, file: &str) -> String {
        let inside = file.strip_prefix(self.folder).filter(|_| !self.folder.is_empty());
        inside.and_then(|rest| rest.strip_prefix('/')).unwrap_or(file).to_owned()
    }
}

fn indent(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

fn account(failure: &CrashFailure) -> String {
    let lines = match failure.dirty_lines {
        0 => "everything guaranteed".to_owned(),
        count => format!("{} not guaranteed", counted(count, "cache line")),
    };
    let first = failure.recovery_from.map_or_else(String::new, |event| {
        format!("Power had failed before, at event {} of the workload. ", separated(event.0))
    });
    format!(
        "{first}Power failed {} (event {}), with {lines}. Then {}.",
        words::point_kind(failure.crash_point.kind),
        separated(failure.crash_point.event.0),
        prose(words::symptom(&failure.symptom).trim_end_matches('.')),
    )
}

fn short(title: &str) -> String {
    match title.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_owned(),
    }
}

fn at(guilty: &Location) -> String {
    let function = short_function(guilty.function.as_deref().unwrap_or("?"));
    match (&guilty.file, guilty.line) {
        (Some(file), Some(line)) => format!("{function} · {}:{line}", file.rsplit('/').next().unwrap_or(file)),
        _ => format!("{function} · {}", guilty.module),
    }
}

/// The terminal's titles begin small; headings do not.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Of a path of modules and types only the end.
fn short_function(name: &str) -> &str {
    let plain = !name.contains(['<', '(']);
    let end = name.rmatch_indices("::").nth(1).filter(|_| plain);
    end.map_or(name, |(at, _)| &name[at + 2..])
}

fn side(role: Role) -> &'static str {
    match role {
        Role::Missing => "missing",
        Role::Next => "next",
        Role::Present => "present",
        Role::Recovery => "recovery",
        _ => "other",
    }
}

fn label(role: Role) -> &'static str {
    match role {
        Role::Missing => "not in PM",
        Role::Next => "not executed yet",
        Role::Present => "in PM",
        Role::Recovery => "recovery was here",
        Role::Library => "through",
        role => role.name(),
    }
}

fn operation(operation: &Operation, crash: EventId) -> OperationView {
    let (state, label) = match (operation.crashed, operation.begin) {
        (true, _) => ("crashed", "⚡ power failed here"),
        (false, Some(begin)) if begin >= crash => ("later", "not begun"),
        (false, _) => ("done", "done"),
    };
    OperationView {
        number: operation.index,
        text: operation.text.clone().unwrap_or_else(|| format!("operation {}", operation.index)),
        state,
        label,
    }
}

fn commands(finding: &Finding) -> Vec<CommandView> {
    let Some(replay) = &finding.replay else { return Vec::new() };
    let debug = replay.replacen("fencepost replay", "fencepost debug", 1);
    vec![
        CommandView { text: replay.clone(), words: "runs recovery on this crash image" },
        CommandView { text: debug, words: "the same under gdb" },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_at_the_front() {
        assert_eq!(short_function("lockfree_list::List::swing"), "List::swing");
        assert_eq!(short_function("put"), "put");
        assert_eq!(short_function("a::<b::c as d::e>::f"), "a::<b::c as d::e>::f");
        assert_eq!(capital("the store"), "The store");
        assert_eq!(short(&"ä".repeat(SHORT + 1)), format!("{}…", "ä".repeat(SHORT)));
        assert_eq!(short("a store"), "a store");
    }

    #[test]
    fn what_began_after_the_crash_is_not_done() {
        let of = |begin: u64, end: u64, crashed| {
            let (begin, end) = (Some(EventId(begin)), Some(EventId(end)));
            operation(&Operation { index: 0, text: None, begin, end, crashed }, EventId(10)).state
        };
        assert_eq!((of(1, 3, false), of(8, 12, true), of(20, 30, false)), ("done", "crashed", "later"));
    }
}
