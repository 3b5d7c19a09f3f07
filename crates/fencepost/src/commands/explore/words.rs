//! The messages of `fencepost explore`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use solve::follow::Mapped;
use solve::frame::Concrete;
use solve::gap::Gap;
use solve::place::{CodePlace, located};
use solve::session::{Ended, Session};
use solve::solver::SolverStage;

use super::ExploreOutcome;
use crate::render;

/// For a shell.
pub fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// A finding's line of JSON, with the input that shows it.
pub fn with_input(line: &str, path: &Path, after: Duration) -> String {
    match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(mut fields)) => {
            fields.insert("input".to_owned(), path.display().to_string().into());
            fields.insert("found_after".to_owned(), after.as_secs_f64().into());
            Value::Object(fields).to_string()
        }
        _ => line.to_owned(),
    }
}

fn stage_name(stage: SolverStage) -> &'static str {
    match stage {
        SolverStage::Cache => "cache",
        SolverStage::Copy => "copy",
        SolverStage::Byte => "byte",
        SolverStage::Solver => "solver",
        SolverStage::NoAddresses => "solver without addresses",
        SolverStage::Alone => "branch alone",
        SolverStage::Impossible => "impossible",
        SolverStage::Unknown => "unknown",
    }
}

/// Every path that the symbolic bytes can take was tried, and nothing was left out.
fn is_complete(session: &Session, ended: Ended) -> bool {
    ended == Ended::Exhausted && session.gaps().is_empty()
}

fn gap_name(gap: Gap) -> &'static str {
    match gap {
        Gap::Concrete => "input became concrete",
        Gap::Addresses => "accesses at addresses that depend on the input",
        Gap::Jumps => "jumps whose targets are not known",
        Gap::Bounds => "values or branches beyond the bounds",
        Gap::Forgotten => "branches forgotten for lack of room",
        Gap::Unanswered => "queries without an answer",
        Gap::Missed => "inputs that took another way",
        Gap::Stopped => "runs ended at their time limit",
        Gap::Threads => "threads, in one order",
    }
}

fn ended_name(session: &Session, ended: Ended) -> &'static str {
    match ended {
        Ended::Exhausted if is_complete(session, ended) => "every branch tried",
        Ended::Exhausted => "no branch left to try",
        Ended::Time => "time budget exhausted",
        Ended::Runs => "run budget exhausted",
        Ended::Interrupted => "interrupted",
        Ended::Asked => "stopped at what was asked for",
        Ended::NoBranch => "no branch depends on the input",
        Ended::NoInput => "the program never read its input",
    }
}

/// Where input became concrete: text and count, most frequent first.
pub fn concrete(session: &Session) -> Vec<(String, u64)> {
    let mut list: Vec<(String, u64)> = session
        .concrete
        .iter()
        .map(|((name, why), &(count, pc))| {
            let why = match why {
                Concrete::NotCovered => "not covered",
                Concrete::Operands => "operands not covered",
                Concrete::NotLogged => "value not logged",
                Concrete::SystemCall => "argument of a system call",
                Concrete::Kernel => "a name or content for the kernel",
            };
            (format!("{name} ({why}) at {}", place(&session.mapped, pc)), count)
        })
        .collect();
    list.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    list
}

/// A line of source, or a function, or the address in the file.
fn place(mapped: &[Mapped], pc: u64) -> String {
    let Some(CodePlace { module, address, function, source }) = located(mapped, pc) else {
        return format!("{pc:#x}");
    };
    let module = module.rsplit('/').next().unwrap_or_default();
    match (source, function) {
        (Some((file, line)), _) => format!("{}:{line}", file.rsplit('/').next().unwrap_or_default()),
        (None, Some(function)) => format!("{function} ({module}+{address:#x})"),
        (None, None) => format!("{module}+{address:#x}"),
    }
}

pub fn summary(session: &Session, ended: Ended, findings: &BTreeSet<String>, took: Duration) -> String {
    let totals = &session.totals;
    let (blocks, pm) = session.explorer.covered();
    let mut text = format!(
        "explored {} paths in {:.1} s ({}): {blocks} blocks, {pm} PM instructions, {} findings",
        totals.runs,
        took.as_secs_f64(),
        ended_name(session, ended),
        findings.len(),
    );
    let gaps = session.gaps();
    if ended == Ended::Exhausted && !gaps.is_empty() {
        let list: Vec<String> = gaps.iter().map(|&(gap, count)| format!("{} ({count})", gap_name(gap))).collect();
        let _ = write!(text, "\nother paths may exist: {}", list.join(", "));
    }
    let stages = session.explorer.stages();
    let queries: u64 = stages.counts.values().sum();
    if queries > 0 {
        let mut counts: Vec<_> = stages.counts.iter().collect();
        counts.sort();
        let list: Vec<String> =
            counts.iter().map(|(stage, count)| format!("{count} {}", stage_name(**stage))).collect();
        let _ = write!(
            text,
            "\n{queries} queries: {}; {} inputs took another way",
            list.join(", "),
            session.explorer.missed
        );
    }
    if totals.pinned > 0 {
        let _ = write!(text, "\n{} addresses that depend on the input were taken as they were", totals.pinned);
    }
    let places = concrete(session);
    if !places.is_empty() {
        let sum: u64 = places.iter().map(|place| place.1).sum();
        let list: Vec<String> = places.iter().take(5).map(|(text, count)| format!("{count} × {text}")).collect();
        let _ = write!(text, "\ninput became concrete {sum} times: {}", list.join(", "));
    }
    text
}

pub fn summary_json(session: &Session, ended: Ended, outcome: &ExploreOutcome, took: Duration) -> String {
    let (totals, stages) = (&session.totals, session.explorer.stages());
    let (blocks, pm) = session.explorer.covered();
    let counts: serde_json::Map<String, Value> =
        stages.counts.iter().map(|(stage, count)| (stage_name(*stage).to_owned(), (*count).into())).collect();
    let gaps: serde_json::Map<String, Value> =
        session.gaps().into_iter().map(|(gap, count)| (gap_name(gap).to_owned(), count.into())).collect();
    let places: Vec<Value> =
        concrete(session).into_iter().map(|(place, count)| json!({"place": place, "count": count})).collect();
    json!({
        "type": "exploration",
        "ended": ended_name(session, ended),
        "complete": is_complete(session, ended),
        "gaps": gaps,
        "seconds": took.as_secs_f64(),
        "cpu_seconds": super::cpu::cpu_seconds(),
        "runs": totals.runs,
        "blocks": blocks,
        "pm_instructions": pm,
        "findings": outcome.findings.len(),
        "unchecked": outcome.unchecked,
        "instructions": totals.instructions,
        "followed": totals.followed,
        "steps": totals.steps,
        "largest_arena": totals.nodes,
        "running_seconds": totals.running.as_secs_f64(),
        "solving_seconds": stages.time.as_secs_f64(),
        "queries": counts,
        "missed": session.explorer.missed,
        "diverged": totals.diverged,
        "concrete": places,
        "pinned": totals.pinned,
        "cut": totals.cut + totals.too_many,
        "dropped": totals.dropped,
        "stopped": totals.stopped,
        "threads": totals.more_threads,
        "code_changed": totals.code_changed,
        "tables": totals.tables,
        "reached": outcome.reached.as_ref().map(|path| path.display().to_string()),
        "progress": outcome.progress,
    })
    .to_string()
}

/// What limits the result.
pub fn warn(session: &Session) {
    let totals = &session.totals;
    if totals.dropped > 0 {
        render::warning(format_args!(
            "paths have more than {} branches that depend on the input: {} further branches were not explored; try a shorter input",
            solve::path::MOST_STEPS,
            totals.dropped
        ));
    }
    if totals.cut + totals.too_many > 0 {
        render::warning(format_args!(
            "expressions grew beyond the bound: {} bytes and {} instructions became concrete",
            totals.cut, totals.too_many
        ));
    }
    if totals.code_changed > 0 {
        render::warning("the program changes its own code: weights of code that never ran are those of the files");
    }
    if totals.more_threads > 0 {
        render::note("the program has threads: input is followed in the order in which they were recorded");
    }
    if totals.stopped > 0 {
        render::warning(format_args!("{} runs were ended after --run-limit", totals.stopped));
    }
    for failure in &session.explorer.stages().failures {
        render::warning(format_args!("a query has no answer: {failure}"));
    }
}
