//! Chooses the part of the trace and the lines that a report shows around a crash, up to a limit.

use std::collections::BTreeMap;

use finding::evidence::Side;
use persistency::line::{LINE_BYTES, LineId};
use rustc_hash::FxHashSet;
use trace::event::{Event, EventId, EventKind, FlushTarget, LineNo, Place};
use trace::{ReadError, TraceReader};

use cause::analyse::RootCause;
use cause::store_history::StoreInfo;

/// A time line has at most so many of each.
const LANES: usize = 64;
const EVENTS_BEFORE: usize = 3000;
pub const EVENTS_AFTER: usize = 300;
/// Events of the trace that are looked at: before the first store that the finding names, before the crash, after it.
const LEAD_IN: u64 = 40;
const FAR_BACK: u64 = 50_000;
const FOLLOW_UP: u64 = 5_000;

/// A part of the trace and the lines to follow through it.
#[derive(Debug)]
pub struct Window {
    pub from: EventId,
    /// Where to stop at the latest.
    pub to: EventId,
    pub lines: Vec<(LineId, Side)>,
    pub lanes_left_out: u64,
    pub events_left_out: u64,
}

impl Window {
    pub fn of(reader: &TraceReader, cause: &RootCause) -> Result<Window, ReadError> {
        let crash = cause.point.at.0;
        let named = || cause.missing.iter().chain(&cause.present).map(|store| store.event.0);
        let first = named().min().unwrap_or(crash).min(crash);
        let last = named().max().unwrap_or(crash).max(crash);
        let from = first.saturating_sub(LEAD_IN).max(crash.saturating_sub(FAR_BACK));
        let to = reader.event_count().min(last.min(crash + FOLLOW_UP).saturating_add(FOLLOW_UP));
        let mut window = Window {
            from: EventId(from),
            to: EventId(to),
            lines: guilty_lines(cause),
            lanes_left_out: 0,
            events_left_out: 0,
        };
        window.add_lines_nearby(reader, crash)?;
        window.keep_newest(reader, cause.point.at)?;
        Ok(window)
    }

    /// Lines that were stored to, those nearest to the crash first.
    fn add_lines_nearby(&mut self, reader: &TraceReader, crash: u64) -> Result<(), ReadError> {
        let mut near: BTreeMap<LineId, u64> = BTreeMap::new();
        let mut events = reader.events_near(self.from..EventId(self.to.0.min(crash + LEAD_IN)));
        while let Some((id, event)) = events.next_with_id()? {
            for line in stored_lines(id, &event) {
                let distance = near.entry(line).or_insert(u64::MAX);
                *distance = (*distance).min(id.0.abs_diff(crash));
            }
        }
        let known: FxHashSet<LineId> = self.lines.iter().map(|(line, _)| *line).collect();
        let mut others: Vec<(u64, LineId)> = near
            .into_iter()
            .filter(|(line, _)| !known.contains(line))
            .map(|(line, distance)| (distance, line))
            .collect();
        others.sort_unstable();
        let room = LANES.saturating_sub(self.lines.len());
        self.lanes_left_out = others.len().saturating_sub(room) as u64;
        self.lines.extend(others.into_iter().take(room).map(|(_, line)| (line, Side::Other)));
        Ok(())
    }

    /// Begins later if there are too many events before the crash.
    fn keep_newest(&mut self, reader: &TraceReader, crash: EventId) -> Result<(), ReadError> {
        let lines = self.line_set();
        let mut ids = Vec::new();
        let mut events = reader.events_near(self.from..crash);
        while let Some((id, event)) = events.next_with_id()? {
            if matters(id, &event, &lines) {
                ids.push(id);
            }
        }
        if let Some(too_many) = ids.len().checked_sub(EVENTS_BEFORE).filter(|&count| count > 0) {
            self.events_left_out = too_many as u64;
            self.from = ids[too_many];
        }
        Ok(())
    }

    pub fn line_set(&self) -> FxHashSet<LineId> {
        self.lines.iter().map(|(line, _)| *line).collect()
    }
}

fn guilty_lines(cause: &RootCause) -> Vec<(LineId, Side)> {
    let mut lines: Vec<(LineId, Side)> = Vec::new();
    let sides = [(&cause.missing, Side::Missing), (&cause.present, Side::Present)];
    for (store, side) in sides.into_iter().flat_map(|(stores, side)| stores.iter().map(move |store| (store, side))) {
        match lines.iter().position(|(line, _)| *line == store.line) {
            Some(at) if lines[at].1 != side => lines[at].1 = Side::Both,
            None if lines.len() < LANES => lines.push((store.line, side)),
            _ => {}
        }
    }
    lines
}

/// The lines that an event stores to.
pub fn stored_lines(id: EventId, event: &Event<'_>) -> impl Iterator<Item = LineId> + use<> {
    let store = StoreInfo::of(id, event).filter(|store| store.len > 0);
    let lines = store.map(|store| {
        let pool = store.place.pool;
        let numbers =
            store.place.offset.0 / LINE_BYTES as u64..=(store.place.offset.0 + store.len - 1) / LINE_BYTES as u64;
        numbers.map(move |number| LineId { pool, line: LineNo(number) })
    });
    lines.into_iter().flatten()
}

/// Can this event change what is known of these lines, or does it say where in the workload we are?
pub fn matters(id: EventId, event: &Event<'_>, lines: &FxHashSet<LineId>) -> bool {
    let holds = |place: Place| lines.contains(&LineId::of(place));
    match event.kind {
        EventKind::Flush { target: FlushTarget::Pool(place), .. } => holds(place),
        EventKind::Fence { .. }
        | EventKind::Rmw { .. }
        | EventKind::Msync { .. }
        | EventKind::Fsync { .. }
        | EventKind::FileZero { .. }
        | EventKind::Resize { .. }
        | EventKind::OperationBegin { .. }
        | EventKind::OperationEnd { .. }
        | EventKind::ProcessExit { .. } => true,
        _ => stored_lines(id, event).any(|line| lines.contains(&line)),
    }
}
