//! All crash points of a trace, in one quick pass that keeps no state of lines.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use trace::event::{CodeAddr, ContextId, Event, EventId, EventKind, FileEvent, FlushKind, FlushTarget};
use trace::{ReadError, TraceReader};

use crate::points::{Density, FailurePoint, Point, PointKind};

/// Does it change what pools contain?
pub(crate) fn stores(event: &EventKind<'_>) -> bool {
    matches!(
        event,
        EventKind::Store { .. }
            | EventKind::Rmw { .. }
            | EventKind::KernelWrite { .. }
            | EventKind::FileWrite { .. }
            | EventKind::FileZero { .. }
            | EventKind::Resize { .. }
    ) || matches!(event, EventKind::File(change) if change.changes())
}

/// One failure point and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub key: FailurePoint,
    /// How many crash points are this one.
    pub occurrences: u64,
    /// It lies in the creation of a pool.
    pub creation: bool,
}

/// A crash point of a survey, in little room: there may be millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pick {
    pub index: u64,
    pub occurrence: u64,
}

/// The crash points of a trace.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    keys: Vec<Known>,
    points: Vec<(EventId, u32)>,
}

impl Survey {
    /// Reads the whole trace. `is_creation` says if a call path and instruction lie in a function that makes a pool (see
    /// [`CREATORS`](crate::points::CREATORS)); it is asked once per failure point.
    pub fn of(
        reader: &TraceReader,
        density: Density,
        is_creation: &dyn Fn(ContextId, CodeAddr) -> bool,
    ) -> Result<Survey, ReadError> {
        let mut pass = Pass { survey: Survey::default(), numbers: FxHashMap::default(), is_creation };
        let mut spotter = Spotter { density, stores: false, others: false, first: true };
        let mut events = reader.events();
        let mut id = EventId(0);
        while let Some(event) = events.next()? {
            if let Some(kind) = spotter.before(&event.kind) {
                pass.add(id, &event, kind);
            }
            id.0 += 1;
            if spotter.is_after(&event.kind) {
                pass.add(id, &event, PointKind::AfterStore);
            }
        }
        if spotter.stores {
            let nowhere = Event {
                thread: Default::default(),
                context: ContextId(0),
                pc: CodeAddr::default(),
                kind: EventKind::ThreadEnd,
            };
            pass.add(id, &nowhere, PointKind::EndOfTrace);
        }
        Ok(pass.survey)
    }

    /// Leaves out the crash points before other events.
    pub fn keep(&mut self, wanted: impl Fn(EventId) -> bool) {
        self.points.retain(|(at, _)| wanted(*at));
        self.keys.iter_mut().for_each(|known| known.occurrences = 0);
        for (_, number) in &self.points {
            self.keys[*number as usize].occurrences += 1;
        }
    }

    /// All crash points.
    pub fn len(&self) -> u64 {
        self.points.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The failure points, in order of first appearance.
    pub fn failure_points(&self) -> &[Known] {
        &self.keys
    }

    /// Crash points that lie in the creation of a pool.
    pub fn creation_points(&self) -> u64 {
        self.keys.iter().filter(|known| known.creation).map(|known| known.occurrences).sum()
    }

    /// One of them.
    pub fn point(&self, pick: Pick) -> Point {
        let (at, number) = self.points[pick.index as usize];
        Point { index: pick.index, at, key: self.keys[number as usize].key, occurrence: pick.occurrence }
    }

    /// All crash points in order, each with what is known of its failure point.
    pub fn points(&self) -> impl Iterator<Item = (Point, &Known)> {
        let mut met = vec![0u64; self.keys.len()];
        self.points.iter().enumerate().map(move |(index, &(at, number))| {
            let known = &self.keys[number as usize];
            met[number as usize] += 1;
            (Point { index: index as u64, at, key: known.key, occurrence: met[number as usize] }, known)
        })
    }
}

struct Pass<'c> {
    survey: Survey,
    numbers: FxHashMap<FailurePoint, u32>,
    is_creation: &'c dyn Fn(ContextId, CodeAddr) -> bool,
}

impl Pass<'_> {
    fn add(&mut self, at: EventId, event: &Event<'_>, kind: PointKind) {
        let key = FailurePoint { context: event.context, pc: event.pc, kind };
        let number = *self.numbers.entry(key).or_insert_with(|| {
            let creation = (self.is_creation)(event.context, event.pc);
            self.survey.keys.push(Known { key, occurrences: 0, creation });
            u32::try_from(self.survey.keys.len() - 1).expect("fewer than 2³² call paths are in a trace")
        });
        self.survey.keys[number as usize].occurrences += 1;
        self.survey.points.push((at, number));
    }
}

/// Says where crash points are.
#[derive(Debug)]
struct Spotter {
    density: Density,
    /// Content of PM has changed since the last crash point.
    stores: bool,
    /// Something was flushed or fenced since.
    others: bool,
    /// Nothing was stored yet.
    first: bool,
}

impl Spotter {
    /// Is there a crash point just before this event?
    fn before(&mut self, event: &EventKind<'_>) -> Option<PointKind> {
        if self.density == Density::Stores && self.first && stores(event) {
            self.first = false;
            return Some(PointKind::FirstStore);
        }
        let kind = match event {
            EventKind::Store { .. } | EventKind::KernelWrite { .. } | EventKind::FileWrite { .. } => {
                self.stores = true;
                return None;
            }
            EventKind::Flush { kind: FlushKind::Cldemote, .. }
            | EventKind::Flush { target: FlushTarget::Volatile(_), .. } => return None,
            EventKind::Flush { .. } => PointKind::Flush,
            EventKind::Fence { .. } => PointKind::Fence,
            EventKind::Rmw { .. } => PointKind::Rmw,
            EventKind::Msync { .. } | EventKind::Fsync { .. } => PointKind::Sync,
            EventKind::FileZero { .. } | EventKind::Resize { .. } => PointKind::File,
            // One call, one change.
            EventKind::File(FileEvent::Write { continues: true, .. }) => {
                self.stores = true;
                return None;
            }
            EventKind::File(change) if change.changes() => PointKind::File,
            EventKind::File(FileEvent::Becomes { .. }) => return None,
            EventKind::File(_) => PointKind::Sync,
            EventKind::OperationBegin { .. } => PointKind::OperationBegin,
            EventKind::OperationEnd { .. } => PointKind::OperationEnd,
            EventKind::ThreadEnd => PointKind::ThreadEnd,
            EventKind::ProcessExit { .. } => PointKind::ProcessExit,
            EventKind::Load { .. }
            | EventKind::Map { .. }
            | EventKind::Unmap { .. }
            | EventKind::ThreadStart
            | EventKind::ProcessStart { .. }
            | EventKind::Exec { .. }
            | EventKind::Call { .. }
            | EventKind::Return { .. } => return None,
        };
        // What is guaranteed may have grown since, though no byte was stored: an operation's end shows that.
        let boundary = matches!(kind, PointKind::OperationBegin | PointKind::OperationEnd);
        let point = self.stores || boundary && self.others;
        self.others = !boundary;
        if point {
            self.stores = false;
        }
        // These change content themselves.
        self.stores |= matches!(kind, PointKind::Rmw | PointKind::File);
        point.then_some(kind)
    }

    /// Is there a crash point just after this event?
    fn is_after(&mut self, event: &EventKind<'_>) -> bool {
        let point = self.density == Density::Stores && stores(event);
        if point {
            self.stores = false;
        }
        point
    }
}
