//! All findings as one text: JSON Lines, SARIF and JUnit.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use lint::explain::{self, CRASH_CLASSES};
use lint::registry::{Settings, built_in};
use report::human::Human;
use report::json::{self, CrashSummary};
use report::junit;
use report::sarif::{self, RuleText, Run};
use trace::TraceReader;

use super::super::options::gate::Judged;
use crate::cli::FindingFormat;
use crate::exit::Exit;
use crate::render;

/// What the document is about.
pub struct Document<'a> {
    /// Where the target was started.
    pub recorded_in: &'a str,
    pub events: u64,
    pub judged: &'a Judged,
    /// How the command will end, if the document can be printed.
    pub exit: Exit,
    /// Remarks on the run as a whole.
    pub notes: &'a [String],
    pub crash: Option<&'a CrashSummary>,
}

impl<'a> Document<'a> {
    /// About a recording.
    pub fn of(reader: &'a TraceReader, judged: &'a Judged, exit: Exit, notes: &'a [String]) -> Document<'a> {
        let recorded_in = &reader.tables().meta.cwd;
        Document { recorded_in, events: reader.event_count(), judged, exit, notes, crash: None }
    }

    /// JSON Lines, the summary last.
    pub fn json(&self) -> String {
        let baseline = self.judged.baseline();
        let mut lines: Vec<String> =
            self.judged.findings.iter().map(|finding| json::finding_against(finding, baseline)).collect();
        let summary = self.judged.summary(self.events);
        lines.push(match self.crash {
            Some(crash) => json::crash_summary(&self.judged.findings, &summary, crash),
            None => json::summary(&self.judged.findings, &summary),
        });
        lines.join("\n")
    }

    /// On standard output.
    pub fn print(&self, format: FindingFormat) -> io::Result<()> {
        match format {
            FindingFormat::Json => render::result(self.json()),
            FindingFormat::Sarif => render::result(self.sarif()),
            FindingFormat::Junit => render::result(self.junit()),
            FindingFormat::Human => Ok(()),
        }
    }

    pub fn sarif(&self) -> String {
        let arguments: Vec<String> = env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
        sarif::document(
            &self.judged.findings,
            &Run {
                version: env!("CARGO_PKG_VERSION"),
                arguments: &arguments,
                exit_code: self.exit.code(),
                folder: &env::current_dir().unwrap_or_default(),
                recorded_in: Path::new(self.recorded_in),
                rules: &known_rules(),
                notes: self.notes,
                suppressed: self.judged.suppressed,
                baseline: self.judged.baseline(),
                events: self.events,
                crash: self.crash,
            },
        )
    }

    pub fn junit(&self) -> String {
        let (recorded_in, folder) = (self.recorded_in, env::current_dir().unwrap_or_default());
        let run = junit::Run {
            folder: &folder,
            recorded_in: Path::new(recorded_in),
            fails: &|finding| self.judged.fails(finding),
            baseline: self.judged.baseline(),
            notes: self.notes,
        };
        let mut human = Human::new(false, vec![PathBuf::from(recorded_in), folder.clone()]);
        junit::document(&self.judged.findings, &run, &mut human)
    }
}

/// The built-in rules and the classes of crash findings, with their pages.
pub fn known_rules() -> Vec<RuleText> {
    let page = |id: &str| explain::page(id).unwrap_or_default().to_owned();
    let mut known: Vec<RuleText> = Vec::new();
    for rule in built_in(&Settings::default()) {
        let info = rule.info();
        known.push(RuleText {
            id: info.id.to_string(),
            name: info.name.to_string(),
            title: info.title.to_string(),
            page: page(&info.id),
        });
    }
    known.extend(CRASH_CLASSES.iter().map(|class| RuleText {
        id: class.id.to_owned(),
        name: class.name.to_owned(),
        title: class.title.to_owned(),
        page: class.page.to_owned(),
    }));
    known
}
