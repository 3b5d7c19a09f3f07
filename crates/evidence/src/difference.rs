//! The bytes of a failing state beside those of a state that recovery copes with.

use crash::checkpoints::PlainWalks;
use crash::image::{CrashImage, LineBytes};
use crash::view::PointView;
use finding::evidence::{Comparison, Difference, Field, Lane, LineDifference, Timeline, Write};
use persistency::line::LineId;
use persistency::point::Content;
use trace::TraceReader;
use trace::event::EventId;

use super::gather::EvidenceError;
use super::lanes::{self, hex};
use super::window;
use cause::analyse::RootCause;
use crash::assignment::Assignment;

/// Lines that are shown.
const LINES: usize = 16;

/// Two states, by the lines that differ: failing bytes, passing bytes.
#[derive(Debug)]
pub struct Compared {
    with: Comparison,
    passes: bool,
    lines: Vec<(LineId, LineBytes, LineBytes)>,
    left_out: u64,
}

/// Compares the failing state with another one of the same crash point; none if none is known to pass. `passes` runs recovery.
pub fn at_crash(
    view: &PointView<'_>,
    cause: &RootCause,
    passes: &mut dyn FnMut(&CrashImage<'_>) -> bool,
) -> Result<Option<Compared>, EvidenceError> {
    let failing = view.image(&cause.state)?;
    let mut other = Assignment::of(view, &cause.state);
    let stores = if cause.in_program_order { &cause.present } else { &cause.missing };
    for store in stores {
        let Some(at) = view.index_of(store.line) else { continue };
        let before = view.lines()[at].stores().iter().take_while(|other| other.event < store.event).count() as u32;
        let kept = other.0[at].kept;
        let pending = view.lines()[at].stores().iter().any(|other| other.event == store.event);
        other.0[at] = Content::whole(match (cause.in_program_order, pending) {
            (true, _) => kept.min(before),
            (false, true) => kept.max(before + 1),
            (false, false) => kept,
        });
    }
    let passing = view.image(&other.state(view))?;
    if passing.lines() == failing.lines() {
        return Ok(None);
    }
    let (with, passes) = match cause.in_program_order {
        true => (Comparison::Without, passes(&passing)),
        false => (Comparison::Restored, passes(&passing)),
    };
    // Another place of the trace may do better than one that fails as well.
    let useful = passes || !cause.in_program_order;
    Ok(useful.then(|| Compared::of(with, passes, &failing, &passing, &[])))
}

/// Compares the failing state with what there was before the store that came too early.
pub fn before(
    reader: &TraceReader,
    walks: &PlainWalks<'_>,
    cause: &RootCause,
    passes: &mut dyn FnMut(&CrashImage<'_>) -> bool,
) -> Result<Compared, EvidenceError> {
    let walk = walks.to(cause.point.at)?;
    let view = walk.view();
    let failing = view.image(&cause.state)?;
    let turn = cause.present.last().map_or(cause.point.at, |store| store.event);
    let earlier = walks.to(turn)?;
    let view = earlier.view();
    let passing = view.image(&Assignment::everything(&view).state(&view))?;
    let between = lines_between(reader, turn, cause.point.at)?;
    let passes = passes(&passing);
    Ok(Compared::of(Comparison::Before, passes, &failing, &passing, &between))
}

fn lines_between(reader: &TraceReader, from: EventId, to: EventId) -> Result<Vec<LineId>, EvidenceError> {
    let mut lines = Vec::new();
    let mut events = reader.events_near(from..to);
    while let Some((id, event)) = events.next_with_id()? {
        lines.extend(window::stored_lines(id, &event));
        if lines.len() > 100 * LINES {
            break;
        }
    }
    Ok(lines)
}

impl Compared {
    /// `between` are lines that may differ though both images have them as guaranteed.
    fn of(
        with: Comparison,
        passes: bool,
        failing: &CrashImage<'_>,
        passing: &CrashImage<'_>,
        between: &[LineId],
    ) -> Compared {
        let dirty = failing.lines().iter().chain(passing.lines()).map(|(line, _)| *line);
        let mut lines: Vec<LineId> = dirty.chain(between.iter().copied()).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.retain(|line| failing.line(*line) != passing.line(*line));
        let left_out = lines.len().saturating_sub(LINES) as u64;
        lines.truncate(LINES);
        let lines = lines.into_iter().map(|line| (line, failing.line(line), passing.line(line))).collect();
        Compared { with, passes, lines, left_out }
    }

    /// With the names of pools and fields.
    pub fn named(self, reader: &TraceReader, timeline: &Timeline) -> Difference {
        let named = |(line, failing, passing): (LineId, LineBytes, LineBytes)| {
            let pool = lanes::pool_name(reader, line);
            let offset = line.start().offset;
            let lane = timeline.lanes.iter().position(|lane| lane.offset == offset && lane.pool == pool);
            LineDifference {
                pool,
                offset,
                failing: hex(&failing),
                passing: hex(&passing),
                fields: lane.map_or_else(Vec::new, |lane| fields(timeline, lane)),
            }
        };
        let lines = self.lines.into_iter().map(named).collect();
        Difference { with: self.with, passes: self.passes, lines, left_out: self.left_out }
    }
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
