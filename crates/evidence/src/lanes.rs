//! Follows lines through a window of the trace: which stores were made, asked for by a flush, guaranteed, after each event.

use crash::checkpoints::PlainWalks;
use crash::walk::{Walk, WalkError};
use finding::evidence::{Lane, LaneNo, Mark, ShownEvent, Timeline, Write};
use finding::site::Site;
use persistency::line::{LINE_BYTES, LineId};
use persistency::point::LineView;
use persistency::tracker::Tracker;
use rustc_hash::FxHashMap;
use trace::TraceReader;
use trace::event::{Event, EventId, EventKind, FenceKind, FlushKind, FlushTarget, Place, StoreKind};

use super::gather::EvidenceError;
use super::places::Places;
use super::window::{self, EVENTS_AFTER, Window};
use cause::analyse::RootCause;
use cause::store_history::{self, StoreInfo};

/// Events that are still shown when all stores of the finding have been guaranteed.
const AFTERWARDS: usize = 6;
/// Names of one lane.
const NAMES: usize = 4;

/// The time line of a root cause. `at_crash` is called once, where power fails.
pub fn timeline(
    reader: &TraceReader,
    walks: &PlainWalks<'_>,
    cause: &RootCause,
    places: &mut Places<'_>,
    at_crash: &mut dyn FnMut(&Walk<'_>) -> Result<(), EvidenceError>,
) -> Result<Timeline, EvidenceError> {
    let window = Window::of(reader, cause)?;
    let mut walk = walks.to(window.from)?;
    let mut lanes = Lanes::new(reader, cause, &window, &walk, places)?;
    let wanted = window.line_set();
    let mut events = reader.events_near(window.from..window.to);
    let mut to = window.from;
    let (mut after, mut afterwards) = (0, 0);
    while let Some((id, event)) = events.next_with_id()? {
        to = EventId(id.0 + 1);
        if !window::matters(id, &event, &wanted) {
            continue;
        }
        if id >= cause.point.at && walk.at() <= cause.point.at {
            walk.advance_to(cause.point.at)?;
            lanes.power_fails(walk.tracker());
            at_crash(&walk)?;
        }
        walk.advance_to(to)?;
        lanes.take(id, &event, walk.tracker(), places);
        if id >= cause.point.at {
            after += 1;
            afterwards += usize::from(lanes.are_settled(walk.tracker(), id));
        }
        if after >= EVENTS_AFTER || afterwards > AFTERWARDS {
            break;
        }
    }
    if walk.at() <= cause.point.at && after == 0 {
        walk.advance_to(cause.point.at)?;
        lanes.power_fails(walk.tracker());
        at_crash(&walk)?;
    }
    lanes.name(places);
    Ok(Timeline {
        crash: cause.point.at,
        from: window.from,
        to: to.max(cause.point.at),
        lanes: lanes.lanes,
        events: lanes.events,
        places: std::mem::take(&mut places.places),
        frames: std::mem::take(&mut places.frames),
        lanes_left_out: window.lanes_left_out,
        events_left_out: window.events_left_out,
    })
}

struct Lanes<'a> {
    cause: &'a RootCause,
    lines: Vec<LineId>,
    numbers: FxHashMap<LineId, LaneNo>,
    lanes: Vec<Lane>,
    marks: Vec<Mark>,
    events: Vec<ShownEvent>,
    /// The last event shown was a fence that changed nothing.
    idle: bool,
}

impl<'a> Lanes<'a> {
    fn new(
        reader: &TraceReader,
        cause: &'a RootCause,
        window: &Window,
        walk: &Walk<'_>,
        places: &mut Places<'_>,
    ) -> Result<Lanes<'a>, WalkError> {
        let mut all = Lanes {
            cause,
            lines: window.lines.iter().map(|(line, _)| *line).collect(),
            numbers: FxHashMap::default(),
            lanes: Vec::new(),
            marks: Vec::new(),
            events: Vec::new(),
            idle: false,
        };
        for (number, &(line, side)) in window.lines.iter().enumerate() {
            let lane = LaneNo(number as u32);
            all.numbers.insert(line, lane);
            let view = walk.tracker().line(line);
            let mut pending = Vec::new();
            for store in view.iter().flat_map(LineView::stores) {
                let bytes = view.and_then(|view| view.bytes(store).ok()).unwrap_or_default();
                let site = store_history::store(reader, store.event)?.map(|fact| fact.site);
                pending.push(Write {
                    event: store.event,
                    lane,
                    start: store.start,
                    bytes: hex(bytes),
                    place: site.and_then(|site| places.number(site)),
                    guilty: all.is_guilty(store.event, line),
                });
            }
            let mark = mark(lane, pending.len() as u64, view.as_ref());
            let pool = pool_name(reader, line);
            let offset = line.start().offset;
            all.lanes.push(Lane { pool, offset, side, names: Vec::new(), pending, asked: mark.asked, in_pm: 0 });
            all.marks.push(mark);
        }
        Ok(all)
    }

    fn is_guilty(&self, event: EventId, line: LineId) -> bool {
        let named = self.cause.missing.iter().chain(&self.cause.present);
        named.into_iter().any(|store| store.event == event && store.line == line)
    }

    fn take(&mut self, id: EventId, event: &Event<'_>, after: &Tracker, places: &mut Places<'_>) {
        let place = places.number(Site { pc: event.pc, context: event.context });
        let writes = self.writes(id, event).into_iter().map(|write| Write { place, ..write }).collect::<Vec<Write>>();
        let mut marks = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            let known = &mut self.marks[number];
            let added = writes.iter().filter(|write| write.lane == known.lane).count() as u64;
            let now = mark(known.lane, known.stored + added, after.line(*line).as_ref());
            if now != *known {
                *known = now;
                marks.push(now);
            }
        }
        let idle = matches!(event.kind, EventKind::Fence { .. } | EventKind::Rmw { .. }) && marks.is_empty();
        // A row of fences without anything to do says nothing that the first of them does not say.
        if idle && self.idle {
            return;
        }
        self.idle = idle;
        let lane = match event.kind {
            EventKind::Flush { target: FlushTarget::Pool(place), .. } => self.numbers.get(&LineId::of(place)).copied(),
            _ => None,
        };
        let operation = match event.kind {
            EventKind::OperationBegin { index } | EventKind::OperationEnd { index } => Some(index),
            _ => None,
        };
        let what = what(&event.kind).to_owned();
        self.events.push(ShownEvent { id, thread: event.thread, what, place, lane, writes, marks, operation });
    }

    /// What the failing state has of each lane.
    fn power_fails(&mut self, tracker: &Tracker) {
        for (number, line) in self.lines.iter().enumerate() {
            let kept = tracker.line(*line).map_or(0, |view| self.cause.state.content(&view).kept);
            self.lanes[number].in_pm = self.marks[number].guaranteed + u64::from(kept);
        }
    }

    /// The parts of a store that fall on lanes.
    fn writes(&self, id: EventId, event: &Event<'_>) -> Vec<Write> {
        let (place, bytes): (Place, &[u8]) = match event.kind {
            EventKind::Store { place, bytes, .. }
            | EventKind::KernelWrite { place, bytes }
            | EventKind::FileWrite { place, bytes } => (place, bytes),
            EventKind::Rmw { place, new, .. } => (place, new),
            _ => return Vec::new(),
        };
        let mut writes = Vec::new();
        for line in window::stored_lines(id, event) {
            let Some(&lane) = self.numbers.get(&line) else { continue };
            let start = line.start().offset.0.max(place.offset.0);
            let end = (line.start().offset.0 + LINE_BYTES as u64).min(place.offset.0 + bytes.len() as u64);
            let part = &bytes[(start - place.offset.0) as usize..(end - place.offset.0) as usize];
            writes.push(Write {
                event: id,
                lane,
                start: (start - line.start().offset.0) as u8,
                bytes: hex(part),
                place: None,
                guilty: self.is_guilty(id, line),
            });
        }
        writes
    }

    /// Are all lines of the finding clean, and all its stores made?
    fn are_settled(&self, tracker: &Tracker, id: EventId) -> bool {
        let named = || self.cause.missing.iter().chain(&self.cause.present);
        named().all(|store: &StoreInfo| store.event <= id && tracker.line(store.line).is_none())
    }

    fn name(&mut self, places: &Places<'_>) {
        for number in 0..self.lanes.len() {
            let lane = LaneNo(number as u32);
            let later = self.events.iter().flat_map(|event| &event.writes).filter(|write| write.lane == lane);
            let mut writes: Vec<&Write> = self.lanes[number].pending.iter().chain(later).collect();
            writes.sort_by_key(|write| !write.guilty);
            let mut names: Vec<String> = Vec::new();
            for name in writes.into_iter().filter_map(|write| places.name(write.place)) {
                if names.len() < NAMES && !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
            self.lanes[number].names = names;
        }
    }
}

/// The file name of a line's pool.
pub(super) fn pool_name(reader: &TraceReader, line: LineId) -> String {
    reader.tables().pool(line.pool).info.path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn mark(lane: LaneNo, stored: u64, view: Option<&LineView<'_>>) -> Mark {
    let pending = view.map_or(0, LineView::pending);
    let unasked = view.map_or(0, |view| view.unasked().count() as u64);
    Mark { lane, stored, asked: stored.saturating_sub(unasked), guaranteed: stored.saturating_sub(pending) }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// In the words of the report.
fn what(kind: &EventKind<'_>) -> &'static str {
    match kind {
        EventKind::Store { kind: StoreKind::Plain, .. } => "store",
        EventKind::Store { .. } => "non-temporal store",
        EventKind::Rmw { .. } => "locked store",
        EventKind::Flush { kind: FlushKind::Clflush, .. } => "clflush",
        EventKind::Flush { kind: FlushKind::Clflushopt, .. } => "clflushopt",
        EventKind::Flush { kind: FlushKind::Clwb, .. } => "clwb",
        EventKind::Flush { kind: FlushKind::Cldemote, .. } => "cldemote",
        EventKind::Fence { kind: FenceKind::Sfence } => "sfence",
        EventKind::Fence { kind: FenceKind::Mfence } => "mfence",
        EventKind::Fence { kind: FenceKind::Locked } => "locked instruction",
        EventKind::Msync { .. } => "msync",
        EventKind::Fsync { data_only: false, .. } => "fsync",
        EventKind::Fsync { data_only: true, .. } => "fdatasync",
        EventKind::KernelWrite { .. } => "kernel write",
        EventKind::FileWrite { .. } => "file write",
        EventKind::FileZero { .. } => "zeroed",
        EventKind::Resize { .. } => "resized",
        EventKind::OperationBegin { .. } => "operation begins",
        EventKind::OperationEnd { .. } => "operation ends",
        EventKind::ProcessExit { .. } => "process ends",
        _ => "event",
    }
}
