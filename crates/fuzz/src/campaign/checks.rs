//! The check of a case: lint, crash search, and what comes of findings that are new.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use finding::finding::Finding;
use finding::note::Note;

use super::findings::Found;
use super::run::Shared;
use super::shorten::shorten;
use crate::case::CaseId;
use crate::corpus::{CorpusError, failed};
use crate::examine::{Examination, ExamineError};
use crate::image::Image;
use crate::recorded::{RecordCaseError, record_case};

/// Attempts to make an input shorter, and how long they may take together.
const TRIES: usize = 40;
const SHORTENING: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    #[error("cannot make a temporary folder for bundles: {0}")]
    Folder(io::Error),
}

enum Checked {
    Done,
    /// Why it could not be.
    Not(String),
}

/// A case that is being checked.
struct Subject<'a> {
    start: &'a Arc<Image>,
    lineage: &'a [Arc<[u8]>],
    crash: bool,
}

impl Shared<'_> {
    /// Checks a case, and keeps what is new of it.
    pub(super) fn check(
        &self,
        case: CaseId,
        input: &Arc<[u8]>,
        start: &Arc<Image>,
        lineage: &[Arc<[u8]>],
        crash: bool,
    ) -> Result<(), CheckError> {
        if let Checked::Not(why) = self.try_check(case, input, &Subject { start, lineage, crash })? {
            let mut state = self.state();
            state.unchecked += 1;
            state.unchecked_why.get_or_insert(format!("case {case}: {why}"));
        }
        Ok(())
    }

    /// Checks what opening a crash image of this case does. One that cannot be opened is the affair of the case.
    pub(super) fn check_image(
        &self,
        case: CaseId,
        input: &Arc<[u8]>,
        start: &Arc<Image>,
        lineage: &[Arc<[u8]>],
    ) -> Result<(), CheckError> {
        self.try_check(case, input, &Subject { start, lineage, crash: true }).map(|_| ())
    }

    fn try_check(&self, case: CaseId, input: &Arc<[u8]>, subject: &Subject<'_>) -> Result<Checked, CheckError> {
        let Some(examination) = self.campaign.examination else { return Ok(Checked::Done) };
        let bundles = tempfile::tempdir().map_err(CheckError::Folder)?;
        let findings = match self.examine(examination, subject, input, bundles.path()) {
            Ok(findings) => findings,
            Err(why) => return Ok(Checked::Not(why)),
        };
        for finding in findings {
            if self.state().findings.knows(&finding.id) {
                continue;
            }
            self.found(examination, subject, case, input, finding, bundles.path())?;
        }
        Ok(Checked::Done)
    }

    fn examine(
        &self,
        examination: &Examination,
        subject: &Subject<'_>,
        input: &[u8],
        bundles: &Path,
    ) -> Result<Vec<Finding>, String> {
        let text = |error: RecordCaseError| error.to_string();
        let recorded =
            record_case(self.campaign.subject, input, subject.start, self.campaign.watch.clone()).map_err(text)?;
        let text = |error: ExamineError| error.to_string();
        let mut findings = examination.lint(&recorded, (self.campaign.rules)()).map_err(text)?;
        if subject.crash {
            let readback = self.readback(subject, input);
            let crashed = examination.crash(&recorded, input, &readback, bundles, self.campaign.stop).map_err(text)?;
            findings.extend(crashed);
        }
        Ok(findings)
    }

    /// Queries about all that is in the pool: what made the starting pool counts as well.
    fn readback(&self, subject: &Subject<'_>, input: &[u8]) -> Vec<u8> {
        let before = subject.lineage.iter().rev().skip(1).rev().map(|input| &input[..]);
        let inputs: Vec<&[u8]> = before.chain([input]).collect();
        self.campaign.inputs.readback(&inputs)
    }

    /// A root cause that nobody knew: with the shortest input that shows it.
    fn found(
        &self,
        examination: &Examination,
        subject: &Subject<'_>,
        case: CaseId,
        input: &[u8],
        finding: Finding,
        bundles: &Path,
    ) -> Result<(), CheckError> {
        let until = Instant::now() + SHORTENING;
        let quick = Examination { budget: examination.budget.min(Duration::from_secs(3)), ..examination.clone() };
        // Misuse needs no crash search.
        let only_lint = Subject { crash: !is_misuse(&finding) && subject.crash, ..*subject };
        let mut best: Option<(Finding, tempfile::TempDir)> = None;
        let mut shows = |candidate: &[u8]| {
            if Instant::now() >= until || self.campaign.stop.load(std::sync::atomic::Ordering::Relaxed) {
                return false;
            }
            let Ok(folder) = tempfile::tempdir() else { return false };
            let found = self.examine(&quick, &only_lint, candidate, folder.path()).unwrap_or_default();
            match found.into_iter().find(|other| other.id == finding.id) {
                Some(same) => {
                    best = Some((same, folder));
                    true
                }
                None => false,
            }
        };
        let parts = |input: &[u8]| self.campaign.inputs.parts(input);
        let shortest = shorten(input, &parts, TRIES, &mut shows);
        let (finding, folder) = match &best {
            Some((finding, folder)) => (finding.clone(), folder.path()),
            None => (finding, bundles),
        };
        let mut state = self.state();
        let mut found = Found { finding, case, second: state.elapsed().as_secs(), execution: state.executions };
        let count = self.campaign.inputs.parts(&shortest).len();
        let id = &found.finding.id.0;
        let folder_of_case = self.campaign.shown.join("findings").join(id).join("case");
        found.finding.notes.push(Note::FoundByCase {
            case: u64::from(case.0),
            executions: found.execution,
            parts: count as u64,
            of_parts: self.campaign.inputs.parts(input).len() as u64,
            folder: folder_of_case.display().to_string(),
        });
        let write = failed("write a finding in", &self.campaign.folder);
        if state.findings.add(found.clone(), Some(folder), &shortest, subject.start).map_err(write)? {
            (self.campaign.on_progress)(&state, Some(&found));
        }
        Ok(())
    }
}

/// No power failure shows it.
fn is_misuse(finding: &Finding) -> bool {
    finding.failure.is_none()
}
