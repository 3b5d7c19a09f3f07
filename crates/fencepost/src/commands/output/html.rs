//! The HTML report of a run, and the file beside the bundles from which `fencepost report` can make it later.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use check::checked::Checked;
use finding::evidence::Evidence;
use finding::finding::Finding;
use finding::source::{Excerpt, Sources};
use report::html::page::Report;
use report::html::run::{Run, VERSION};
use trace::TraceReader;

use super::super::options::crash::CrashOptions;
use super::super::options::gate::Judged;
use super::coverage_words::CoverageWords;
use super::document::known_rules;
use super::findings::numbers;
use crate::exit::Exit;
use crate::render;

/// Beside the bundles. No finding's id begins so.
const LAST_RUN: &str = "last-run.json";
/// Lines of source before and after a location.
const AROUND: u32 = 3;

/// What was found, for the report.
#[derive(Clone, Copy, Debug)]
pub struct HtmlInput<'a> {
    pub reader: &'a TraceReader,
    pub checked: &'a Checked,
    pub judged: &'a Judged,
    pub options: &'a CrashOptions,
    pub interrupted: bool,
}

/// Says before anything runs that a report cannot be written.
pub fn can_be_written(html: Option<&Path>) -> Result<(), String> {
    html.map_or(Ok(()), |path| writable("--html", path))
}

/// As [`can_be_written`], of the file that is given with `option`.
pub fn writable(option: &str, path: &Path) -> Result<(), String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() {
        return Err(format!("{option} {}: this is a folder; name a file in it", path.display()));
    }
    if folder.is_dir() {
        Ok(())
    } else {
        Err(format!("{option} {}: there is no folder {}", path.display(), folder.display()))
    }
}

impl HtmlInput<'_> {
    /// Keeps the run for `fencepost report` and writes the report that the user asked for. `exit` is how the command would
    /// end otherwise.
    pub fn write(&self, exit: Exit) -> Exit {
        let bundles = &self.options.bundles;
        let evidence = self.evidence();
        let run = self.run(&evidence);
        keep_run(bundles, &run);
        match &self.options.html {
            Some(path) => write_page(path, &run, &evidence, exit),
            None => exit,
        }
    }

    fn evidence(&self) -> Vec<Evidence> {
        let shown = |evidence: &&Evidence| self.judged.findings.iter().any(|known| known.id == evidence.finding.id);
        let mut evidence: Vec<Evidence> = self.checked.evidence.iter().filter(shown).cloned().collect();
        // With what other rules say of it.
        for evidence in &mut evidence {
            let judged = self.judged.findings.iter().find(|known| known.id == evidence.finding.id);
            evidence.finding.clone_from(judged.unwrap_or(&evidence.finding.clone()));
        }
        evidence
    }

    fn run(&self, evidence: &[Evidence]) -> Run {
        let meta = &self.reader.tables().meta;
        let shown = |finding: &&Finding| !evidence.iter().any(|evidence| evidence.finding.id == finding.id);
        let others: Vec<Finding> = self.judged.findings.iter().filter(shown).cloned().collect();
        let words = CoverageWords::of(self.checked);
        Run {
            fencepost_run: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            date: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok().map(|time| time.as_secs()),
            arguments: env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect(),
            target: meta.command.clone(),
            folder: meta.cwd.clone(),
            pools: self.reader.tables().pools.iter().map(|pool| pool.info.path.clone()).collect(),
            events: self.checked.events,
            not_explored: words.not_explored().chain(self.not_asked_for()).collect(),
            explored: words.explored,
            notes: self.checked.notes.clone(),
            interrupted: self.interrupted,
            suppressed: self.judged.suppressed,
            known: self.known().map(|finding| finding.id.clone()).collect(),
            crash: Some(numbers(self.checked)),
            campaign: None,
            bundled: evidence.iter().map(|evidence| evidence.finding.id.clone()).collect(),
            excerpts: excerpts(&others, &meta.cwd),
            others,
            merged: evidence.iter().map(|it| &it.finding).filter(|finding| !finding.also.is_empty()).cloned().collect(),
        }
    }

    fn known(&self) -> impl Iterator<Item = &Finding> {
        let knows = |finding: &&Finding| self.judged.baseline().is_some_and(|baseline| baseline.knows(finding));
        self.judged.findings.iter().filter(knows)
    }

    /// What this command does not look for, so that nobody takes it for done.
    fn not_asked_for(&self) -> impl Iterator<Item = String> {
        let again = (!self.options.again).then_some("a second power failure, during recovery (--again)");
        let inputs = Some("other workloads: everything here is about the one run that was recorded");
        [again, inputs].into_iter().flatten().map(str::to_owned)
    }
}

/// Writes down what `fencepost report` has to know of a run.
pub fn keep_run(bundles: &Path, run: &Run) {
    // A clean run leaves no folder; in one that is there, earlier findings are history now.
    if bundles.is_dir()
        && let Err(error) = fs::write(bundles.join(LAST_RUN), json(run))
    {
        render::note(format_args!(
            "cannot write {}: {error}; `fencepost report` will not know of this run",
            bundles.join(LAST_RUN).display()
        ));
    }
}

/// Reads what [`keep_run`] kept; none if there is nothing.
pub fn last_run(bundles: &Path) -> Result<Option<Run>, String> {
    let path = bundles.join(LAST_RUN);
    let damaged = |what: String| format!("{} cannot be read: {what}; run the check again", path.display());
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(_) if !path.exists() => return Ok(None),
        Err(error) => return Err(damaged(error.to_string())),
    };
    let run: Run = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if run.fencepost_run == VERSION {
        Ok(Some(run))
    } else {
        Err(damaged(format!("it is of version {}, not {VERSION}", run.fencepost_run)))
    }
}

/// Writes the report; says where it is.
pub fn write_page(path: &Path, run: &Run, evidence: &[Evidence], exit: Exit) -> Exit {
    let page = Report { run, evidence, rules: &known_rules() }.html();
    match fs::write(path, page) {
        Ok(()) => {
            render::note(format_args!("the report is in {}", path.display()));
            exit
        }
        Err(error) => {
            render::error(format_args!("cannot write the report {}: {error}", path.display()));
            Exit::Usage
        }
    }
}

fn json(run: &Run) -> Vec<u8> {
    serde_json::to_vec(run).expect("plain data is always JSON")
}

/// Source around the locations of findings that have no evidence.
pub fn excerpts(findings: &[Finding], recorded_in: &str) -> Vec<Excerpt> {
    let mut sources = Sources::new(vec![PathBuf::from(recorded_in), env::current_dir().unwrap_or_default()]);
    let mut excerpts: Vec<Excerpt> = Vec::new();
    for location in findings.iter().flat_map(|finding| &finding.locations) {
        let Some((file, line)) = location.file.as_ref().zip(location.line) else { continue };
        excerpts.extend(sources.excerpt(file, line, AROUND).filter(|new| !excerpts.contains(new)));
    }
    excerpts
}
