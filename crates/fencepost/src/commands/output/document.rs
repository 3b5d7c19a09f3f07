//! The formats that are one document with all findings: SARIF and JUnit.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use finding::finding::Finding;
use lint::explain::{self, CRASH_CLASSES};
use lint::registry::{Settings, built_in};
use report::human::Human;
use report::json::CrashSummary;
use report::junit;
use report::sarif::{self, RuleText, Run};
use trace::TraceReader;

use super::super::options::gate::Judged;
use crate::exit::Exit;
use crate::render;

/// What the document is about.
pub struct Document<'a> {
    pub reader: &'a TraceReader,
    pub judged: &'a Judged,
    /// How the command will end, if the document can be printed.
    pub exit: Exit,
    /// Remarks on the run as a whole.
    pub notes: &'a [String],
    pub crash: Option<&'a CrashSummary>,
}

impl Document<'_> {
    pub fn print_sarif(&self) -> io::Result<()> {
        let arguments: Vec<String> = env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
        render::result(sarif::document(
            &self.judged.findings,
            &Run {
                version: env!("CARGO_PKG_VERSION"),
                arguments: &arguments,
                exit_code: self.exit.code(),
                folder: &env::current_dir().unwrap_or_default(),
                recorded_in: Path::new(&self.reader.tables().meta.cwd),
                rules: &known_rules(),
                notes: self.notes,
                suppressed: self.judged.suppressed,
                baseline: self.judged.baseline(),
                events: self.reader.event_count(),
                crash: self.crash,
            },
        ))
    }

    pub fn print_junit(&self) -> io::Result<()> {
        let folders = [PathBuf::from(&self.reader.tables().meta.cwd), env::current_dir().unwrap_or_default()];
        let mut human = Human::new(false, folders.into());
        let fails = |finding: &Finding| self.judged.fails(finding);
        render::result(junit::document(&self.judged.findings, &fails, self.notes, &mut human))
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
