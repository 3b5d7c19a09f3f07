//! What a search for failing crash states prints: findings, what was tested, what was not.

use std::env;
use std::io;
use std::path::PathBuf;

use check::checked::Checked;
use report::human::{Human, Summary};
use report::json::CrashSummary;
use report::words;
use trace::TraceReader;

use super::super::options::gate::Judged;
use super::coverage_words::{CoverageWords, not_compared};
use super::document::Document;
use crate::cli::FindingFormat;
use crate::exit::Exit;
use crate::render;

/// Prints findings (`judged` has the lint's as well) and the coverage statement; `exit` is how the command will end.
pub fn print(
    reader: &TraceReader,
    checked: &Checked,
    judged: &Judged,
    format: FindingFormat,
    exit: Exit,
) -> io::Result<()> {
    let notes: Vec<String> = checked.notes.iter().map(words::run_note).collect();
    if format != FindingFormat::Human {
        notes.iter().for_each(render::note);
        return with_document(reader, checked, judged, exit, |document| document.print(format));
    }
    let folders = [PathBuf::from(&reader.tables().meta.cwd), env::current_dir().unwrap_or_default()];
    let mut human = Human::new(true, folders.into());
    let news = judged.news();
    for finding in &news {
        render::result(format_args!("{}\n", human.finding(finding)))?;
    }
    notes.iter().for_each(render::note);
    render::result(CoverageWords::of(checked).text())?;
    render::result(human.summary(&news, &Summary { open: checked.is_open(), ..judged.summary(checked.events) }))
}

/// What machines read about a search.
pub fn with_document<T>(
    reader: &TraceReader,
    checked: &Checked,
    judged: &Judged,
    exit: Exit,
    write: impl FnOnce(&Document<'_>) -> T,
) -> T {
    let notes: Vec<String> = checked.notes.iter().map(words::run_note).chain(not_compared(checked.judged_by)).collect();
    write(&Document {
        crash: Some(&numbers(checked)),
        events: checked.events,
        ..Document::of(reader, judged, exit, &notes)
    })
}

/// The same for machines.
pub fn numbers(checked: &Checked) -> CrashSummary {
    let Checked { coverage, judged_by, .. } = checked;
    let oracles = [("recovery", true), ("checker", judged_by.checker), ("answers", judged_by.answers)];
    CrashSummary {
        crash_points: coverage.crash_points,
        failure_points: coverage.failure_points,
        points_wanted: coverage.points_wanted,
        points_decided: coverage.points_finished,
        points_in_part: coverage.points_in_part,
        states_possible: coverage.states_possible.to_string(),
        states_decided: coverage.states_decided,
        states_failing: coverage.states_failing,
        recovery_runs: coverage.recovery_runs,
        runs_saved: coverage.runs_saved,
        complete: coverage.complete,
        oracles: oracles.into_iter().filter(|(_, used)| *used).map(|(name, _)| name.to_owned()).collect(),
    }
}
