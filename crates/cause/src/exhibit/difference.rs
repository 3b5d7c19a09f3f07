//! The bytes of a failing state beside those of a state that recovery copes with.

use crash::image::CrashImage;
use crash::walk::{Rules, Walk};
use finding::exhibit::{Comparison, Difference, Field, Lane, LineDifference, Timeline, Write};
use persistency::line::LineId;
use persistency::point::Content;
use trace::TraceReader;
use trace::event::EventId;

use super::gather::ExhibitError;
use super::lanes::hex;
use super::window;
use crate::analyse::RootCause;
use crate::trial::{Assignment, TrialError};

/// Lines that are shown.
const LINES: usize = 16;

/// Compares the failing state with the nearest one that passes. `passes` runs recovery.
pub fn difference(
    reader: &TraceReader,
    rules: Rules,
    cause: &RootCause,
    timeline: &Timeline,
    passes: &mut dyn FnMut(&CrashImage<'_>) -> bool,
) -> Result<Difference, ExhibitError> {
    let mut walk = Walk::new(reader, rules)?;
    walk.advance_to(cause.point.at)?;
    let view = walk.view();
    let failing = view.image(&cause.state).map_err(TrialError::from)?;
    if !cause.in_program_order {
        let mut restored = Assignment::of(&view, &cause.state);
        for lost in &cause.missing {
            let Some(at) = view.index_of(lost.line) else { continue };
            let upto = view.lines()[at].stores().iter().position(|store| store.event == lost.event);
            let kept = upto.map_or(0, |upto| upto as u32 + 1);
            restored.0[at] = Content::whole(restored.0[at].kept.max(kept));
        }
        let passing = view.image(&restored.state(&view)).map_err(TrialError::from)?;
        let passes = passes(&passing);
        return Ok(compare(reader, timeline, Comparison::Restored, passes, &failing, &passing, &[]));
    }
    let mut without = Assignment::of(&view, &cause.state);
    for early in &cause.present {
        let Some(at) = view.index_of(early.line) else { continue };
        let kept = view.lines()[at].stores().iter().take_while(|store| store.event < early.event).count() as u32;
        without.0[at] = Content::whole(without.0[at].kept.min(kept));
    }
    let passing = view.image(&without.state(&view)).map_err(TrialError::from)?;
    let differs = passing.lines() != failing.lines();
    if differs && passes(&passing) {
        return Ok(compare(reader, timeline, Comparison::Without, true, &failing, &passing, &[]));
    }
    let turn = cause.present.last().map_or(cause.point.at, |store| store.event);
    let mut earlier = Walk::new(reader, rules)?;
    earlier.advance_to(turn)?;
    let view = earlier.view();
    let passing = view.image(&Assignment::everything(&view).state(&view)).map_err(TrialError::from)?;
    let between = lines_between(reader, turn, cause.point.at)?;
    let passes = passes(&passing);
    Ok(compare(reader, timeline, Comparison::Before, passes, &failing, &passing, &between))
}

fn lines_between(reader: &TraceReader, from: EventId, to: EventId) -> Result<Vec<LineId>, ExhibitError> {
    let mut lines = Vec::new();
    let mut events = reader.events_in(from..to);
    while let Some((id, event)) = events.next_with_id()? {
        lines.extend(window::stored_lines(id, &event));
        if lines.len() > 100 * LINES {
            break;
        }
    }
    Ok(lines)
}

fn compare(
    reader: &TraceReader,
    timeline: &Timeline,
    with: Comparison,
    passes: bool,
    failing: &CrashImage<'_>,
    passing: &CrashImage<'_>,
    between: &[LineId],
) -> Difference {
    let dirty = failing.lines().iter().chain(passing.lines()).map(|(line, _)| *line);
    let mut lines: Vec<LineId> = dirty.chain(between.iter().copied()).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.retain(|line| failing.line(*line) != passing.line(*line));
    let left_out = lines.len().saturating_sub(LINES) as u64;
    let file =
        |line: &LineId| reader.tables().pool(line.pool).info.path.rsplit('/').next().unwrap_or_default().to_owned();
    let shown = lines.iter().take(LINES).map(|line| {
        let (pool, offset) = (file(line), line.start().offset);
        let lane = timeline.lanes.iter().position(|lane| lane.offset == offset && lane.pool == pool);
        LineDifference {
            pool,
            offset,
            failing: hex(&failing.line(*line)),
            passing: hex(&passing.line(*line)),
            fields: lane.map_or_else(Vec::new, |lane| fields(timeline, lane)),
        }
    });
    Difference { with, passes, lines: shown.collect(), left_out }
}

/// The bytes of a lane that stores with a name went to. Where names overlap the newest wins.
fn fields(timeline: &Timeline, lane: usize) -> Vec<Field> {
    let Lane { pending, .. } = &timeline.lanes[lane];
    let later = timeline.events.iter().flat_map(|event| &event.writes).filter(|write| write.lane.0 as usize == lane);
    let mut names: [Option<&str>; 64] = [None; 64];
    for Write { start, bytes, place, .. } in pending.iter().chain(later) {
        let name = place.and_then(|place| timeline.places[place.0 as usize].name.as_deref());
        let end = (*start as usize + bytes.len() / 2).min(64);
        if name.is_some() {
            names[*start as usize..end].fill(name);
        }
    }
    let mut fields: Vec<Field> = Vec::new();
    for (at, name) in (0u8..).zip(names) {
        let Some(name) = name else { continue };
        match fields.last_mut() {
            Some(last) if last.name == name && last.start + last.len == at => last.len += 1,
            _ => fields.push(Field { start: at, len: 1, name: name.to_owned() }),
        }
    }
    fields
}
