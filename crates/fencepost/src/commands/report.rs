//! `fencepost report`: makes the HTML report of the last run from its bundles.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use evidence::bundle::FOLDER;
use finding::evidence::Evidence;
use finding::finding::FindingId;
use finding::note::RunNote;
use report::html::run::Run;

use super::output::html::{can_be_written, last_run, write_page};
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost report                                   the last check in this folder
  fencepost report --bundles ci/.fencepost -o crashes.html
  fencepost report --all                             older findings as well

The report is one self-contained file. For every finding it shows the source, the cache lines around
the crash, the bytes that recovery found, call paths and the repair. `fencepost check --html FILE`
writes the same report right away, even if nothing was found.";

/// Write an HTML report of the last check.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Report {
    /// Folder of findings.
    #[arg(long, value_name = "FOLDER", default_value = FOLDER)]
    bundles: PathBuf,
    /// File to write the report to.
    #[arg(short, long, value_name = "FILE", default_value = "fencepost-report.html")]
    output: PathBuf,
    /// Include findings of earlier runs.
    #[arg(long)]
    all: bool,
}

impl Report {
    pub fn run(&self) -> Exit {
        match self.gather() {
            Ok((run, found)) => write_page(&self.output, &run, &found, Exit::Clean),
            Err(text) => {
                render::error(text);
                Exit::Usage
            }
        }
    }

    fn gather(&self) -> Result<(Run, Vec<Evidence>), String> {
        can_be_written(Some(&self.output))?;
        let there = bundle_ids(&self.bundles);
        let kept = last_run(&self.bundles)?;
        if kept.is_none() && there.is_empty() {
            return Err(format!(
                "there is nothing to report in {}; `fencepost check` puts its findings there, and `fencepost check --html FILE` writes a report at once",
                self.bundles.display()
            ));
        }
        let known = kept.is_some();
        let mut run = kept.unwrap_or_else(|| Run { version: env!("CARGO_PKG_VERSION").to_owned(), ..Run::default() });
        if !known {
            run.notes.push(RunNote::RunNotKept);
        }
        let older = there.iter().filter(|id| !run.bundled.contains(id)).cloned().collect::<Vec<FindingId>>();
        let mut wanted = run.bundled.clone();
        if self.all || !known {
            wanted.extend(older);
        } else if !older.is_empty() {
            run.notes.push(RunNote::OlderFindings { count: older.len() as u64 });
        }
        let mut found = Vec::new();
        for id in wanted {
            match evidence::file::read(&self.bundles, &id) {
                Ok(mut evidence) => {
                    if let Some(merged) = run.merged.iter().find(|merged| merged.id == id) {
                        evidence.finding.clone_from(merged);
                    }
                    found.push(evidence);
                }
                Err(error) => {
                    render::warning(&error);
                    run.notes.push(RunNote::Unreadable { why: error.to_string() });
                }
            }
        }
        Ok((run, found))
    }
}

fn bundle_ids(folder: &Path) -> Vec<FindingId> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir());
    let mut ids: Vec<FindingId> =
        entries.map(|entry| FindingId(entry.file_name().to_string_lossy().into_owned())).collect();
    ids.sort();
    ids
}
