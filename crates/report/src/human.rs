//! For people, in the manner of rustc: the guilty line with its source, the other sides, call paths and counts beneath.

use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use finding::finding::{CallPath, Finding, Location, Role};
use finding::severity::Severity;
use finding::source::Sources;

use crate::number::counted;
use crate::words;

/// At most so many call paths and frames of each are shown; the counts cover all.
const PATHS: usize = 3;
const FRAMES: usize = 8;

/// What is said once, at the end.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub suppressed: u64,
    /// Remarks on performance wholly inside libraries, which are not shown.
    pub inside_libraries: u64,
    /// Findings that the baseline has; none: there is no baseline.
    pub known: Option<u64>,
    pub events: u64,
    /// Recovery failed, and no time was left to tell why.
    pub open: bool,
}

/// Renders findings.
#[derive(Debug)]
pub struct Human {
    renderer: Renderer,
    sources: Sources,
}

impl Human {
    /// Looks for relative source paths in `folders`.
    pub fn new(colours: bool, folders: Vec<PathBuf>) -> Human {
        let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
        Human { renderer, sources: Sources::new(folders) }
    }

    /// One finding, several lines, without the last line's end.
    pub fn finding(&mut self, finding: &Finding) -> String {
        let title = level(finding.severity).primary_title(words::title(finding)).id(finding.rule.as_str());
        let mut group = Group::with_title(title);
        for (number, location) in finding.locations.iter().enumerate() {
            if location.role != Role::Library {
                group = group.element(self.place(location, number == 0));
            }
        }
        if let Some(library) = finding.locations.iter().find(|location| location.role == Role::Library) {
            let name = library.function.as_ref().map_or_else(String::new, |function| format!("`{function}` of "));
            group = group.element(Level::NOTE.message(format!("through {name}{}", at_home(library))));
        }
        for text in words::notes(finding) {
            group = group.element(Level::NOTE.message(text));
        }
        for also in &finding.also {
            group = group.element(Level::NOTE.message(words::also(also)));
        }
        for text in paths(&finding.paths) {
            group = group.element(Level::NOTE.message(text));
        }
        let times = if finding.count == 1 { "once".to_owned() } else { format!("{} times", finding.count) };
        let again = finding.replay.as_ref().map_or_else(String::new, |replay| format!("`{replay}` reproduces it; "));
        let thread =
            finding.thread.as_ref().map_or_else(String::new, |thread| format!(" of {}", words::thread(thread)));
        let footer = format!(
            "{times}, first at event {}{thread}; finding {}; {again}`fencepost explain {}` explains the rule",
            finding.first.0, finding.id, finding.rule
        );
        self.renderer.render(&[group.element(Level::HELP.with_name("help").message(footer))])
    }

    fn place(&mut self, location: &Location, guilty: bool) -> Element<'static> {
        let function = location.function.as_deref().unwrap_or("an unnamed function");
        let (Some(file), Some(line)) = (&location.file, location.line) else {
            let role = guilty_side(location.role);
            let at = format!("{}+{:#x} ({role} in {function})", location.module, location.address);
            return Origin::path(at).into();
        };
        match self.sources.line(file, line).filter(|text| !text.trim().is_empty()) {
            Some(text) => {
                let start = text.len() - text.trim_start().len();
                let span = start..text.trim_end().len();
                let (kind, label) = if guilty {
                    (AnnotationKind::Primary, format!("{} in `{function}`", guilty_side(location.role)))
                } else {
                    (AnnotationKind::Context, format!("{} in `{function}`", other_side(location.role)))
                };
                Snippet::source(text)
                    .line_start(line as usize)
                    .path(file.clone())
                    .annotation(kind.span(span).label(label))
                    .into()
            }
            None => Origin::path(format!("{file}:{line} ({} in {function})", guilty_side(location.role))).into(),
        }
    }

    /// The last line; `findings` are those that were shown.
    pub fn summary(&self, findings: &[Finding], summary: &Summary) -> String {
        let counts: Vec<String> = Severity::ALL
            .into_iter()
            .filter_map(|severity| {
                let count = findings.iter().filter(|finding| finding.severity == severity).count();
                // There is no plural of performance.
                let plural = if count == 1 || severity == Severity::Performance { "" } else { "s" };
                (count > 0).then(|| format!("{count} {severity}{plural}"))
            })
            .collect();
        let known = summary.known.unwrap_or_default();
        let found = match counts.is_empty() {
            true if known > 0 => "nothing new".to_owned(),
            true if summary.open => "failures, but no time to find their cause,".to_owned(),
            true => "nothing found".to_owned(),
            false => counts.join(", "),
        };
        let apart: Vec<String> = [("known", known), ("suppressed", summary.suppressed)]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(word, count)| format!("{count} {word}"))
            .collect();
        let apart = if apart.is_empty() { String::new() } else { format!(" ({})", apart.join(", ")) };
        format!("{found}{apart} in {}", counted(summary.events, "event"))
    }
}

/// Where a function through which the guilty line acted comes from.
fn at_home(library: &Location) -> String {
    match (&library.file, library.line) {
        (Some(file), Some(line)) => format!("{} ({file}:{line})", library.module),
        _ => library.module.clone(),
    }
}

/// What is said of the guilty place.
fn guilty_side(role: Role) -> &'static str {
    match role {
        Role::Missing => "not in PM: store",
        Role::Present => "in PM: store",
        Role::Next => "not executed yet: store",
        role => role.name(),
    }
}

/// What is said of a place that is not the guilty one.
fn other_side(role: Role) -> String {
    match role {
        Role::Missing => "this was not in PM".to_owned(),
        Role::Present => "while this was".to_owned(),
        Role::Next => "this had not been executed yet".to_owned(),
        Role::Recovery => "recovery was here".to_owned(),
        role => format!("the other side: {}", role.name()),
    }
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Performance => Level::WARNING.with_name("performance"),
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    }
}

/// The call paths, most frequent first; a path of one frame says nothing new.
fn paths(paths: &[CallPath]) -> Vec<String> {
    let mut texts = Vec::new();
    if paths.len() == 1 && paths[0].frames.len() < 2 {
        return texts;
    }
    for path in paths.iter().take(PATHS) {
        let mut text = format!("called {}× by", path.count);
        for frame in path.frames.iter().take(FRAMES) {
            text.push_str(&format!("\n{frame}"));
        }
        if path.frames.len() > FRAMES {
            text.push_str(&format!("\nand {} more", path.frames.len() - FRAMES));
        }
        texts.push(text);
    }
    if paths.len() > PATHS {
        texts.push(format!("and {}", counted((paths.len() - PATHS) as u64, "more call path")));
    }
    texts
}
