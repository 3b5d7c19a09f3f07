//! What the trace says about single stores: where they come from, and what became of them.

use finding::site::Site;
use persistency::line::LineId;
use trace::event::{Event, EventId, EventKind, FlushKind, FlushTarget, Place, StoreKind, ThreadId};
use trace::{ReadError, TraceReader};

/// A store, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreInfo {
    pub event: EventId,
    pub thread: ThreadId,
    pub site: Site,
    pub place: Place,
    pub len: u64,
    /// The line in question: a store may touch two.
    pub line: LineId,
    /// Bypasses the cache.
    pub streams: bool,
}

impl StoreInfo {
    pub fn of(id: EventId, event: &Event<'_>) -> Option<StoreInfo> {
        let (place, len, streams) = match event.kind {
            EventKind::Store { place, kind, bytes } => (place, bytes.len(), kind != StoreKind::Plain),
            EventKind::Rmw { place, new, .. } => (place, new.len(), false),
            EventKind::KernelWrite { place, bytes } | EventKind::FileWrite { place, bytes } => {
                (place, bytes.len(), false)
            }
            _ => return None,
        };
        let site = Site { pc: event.pc, context: event.context };
        Some(StoreInfo {
            event: id,
            thread: event.thread,
            site,
            place,
            len: len as u64,
            line: LineId::of(place),
            streams,
        })
    }

    /// Have they bytes in common?
    pub fn overlaps(&self, other: &StoreInfo) -> bool {
        let end = |store: &StoreInfo| store.place.offset.0 + store.len;
        self.place.pool == other.place.pool && self.place.offset.0 < end(other) && other.place.offset.0 < end(self)
    }

    /// The lines that it touches.
    pub fn touches(&self, line: LineId) -> bool {
        let first = LineId::of(self.place);
        let last = (self.place.offset.0 + self.len.max(1) - 1) / persistency::line::LINE_BYTES as u64;
        line.pool == first.pool && (first.line.0..=last).contains(&line.line.0)
    }
}

/// The store with this number.
pub fn store(reader: &TraceReader, id: EventId) -> Result<Option<StoreInfo>, ReadError> {
    let mut events = reader.events_near(id..EventId(id.0 + 1));
    Ok(events.next_with_id()?.and_then(|(id, event)| StoreInfo::of(id, &event)))
}

/// How far back or ahead to look.
const NEAR: u64 = 100_000;

/// The newest store before `at`.
pub fn last_store_before(reader: &TraceReader, at: EventId) -> Result<Option<StoreInfo>, ReadError> {
    let mut width = 64;
    loop {
        let from = EventId(at.0.saturating_sub(width));
        let mut events = reader.events_near(from..at);
        let mut last = None;
        while let Some((id, event)) = events.next_with_id()? {
            last = StoreInfo::of(id, &event).or(last);
        }
        if last.is_some() || from.0 == 0 || width >= NEAR {
            return Ok(last);
        }
        width *= 8;
    }
}

/// The stores of a part of the trace, at most `most`.
pub fn stores_in(reader: &TraceReader, from: EventId, to: EventId, most: usize) -> Result<Vec<StoreInfo>, ReadError> {
    let mut events = reader.events_near(from..to);
    let mut stores = Vec::new();
    while stores.len() < most
        && let Some((id, event)) = events.next_with_id()?
    {
        stores.extend(StoreInfo::of(id, &event));
    }
    Ok(stores)
}

/// The last of the flushes in a row with which the line of a store is flushed next: where the fence for all of them belongs.
pub fn flushed_at(reader: &TraceReader, store: &StoreInfo) -> Result<Option<Site>, ReadError> {
    let mut events = reader
        .events_near(EventId(store.event.0 + 1)..EventId(reader.event_count().min(store.event.0.saturating_add(NEAR))));
    let mut last: Option<(ThreadId, Site)> = None;
    while let Some((id, event)) = events.next_with_id()? {
        let own = last.is_none_or(|(thread, _)| thread == event.thread);
        match event.kind {
            EventKind::Flush { target: FlushTarget::Pool(place), .. }
                if own && (last.is_some() || LineId::of(place) == store.line) =>
            {
                last = Some((event.thread, Site { pc: event.pc, context: event.context }));
            }
            EventKind::Fence { .. } if own && last.is_some() => break,
            _ if own && last.is_some() && StoreInfo::of(id, &event).is_some() => break,
            _ => {}
        }
    }
    Ok(last.map(|(_, site)| site))
}

/// What becomes of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFate {
    /// The program makes it durable, sooner or later.
    Durable,
    /// It becomes durable with a later store to its line, in another epoch, for which the flush was meant.
    ByAccident,
    Never,
}

pub fn fate(reader: &TraceReader, store: &StoreInfo) -> Result<StoreFate, ReadError> {
    let line = store.line;
    let end = EventId(reader.event_count().min(store.event.0.saturating_add(NEAR * 20)));
    let mut events = reader.events_near(EventId(store.event.0 + 1)..end);
    let mut epoch_over = false;
    let mut durable = StoreFate::Durable;
    let mut flush_pending: Option<ThreadId> = store.streams.then_some(store.thread);
    while let Some((id, event)) = events.next_with_id()? {
        let covers = |place: Place, len: u64| {
            let start = line.start().offset.0;
            place.pool == line.pool && place.offset.0 <= start && start < place.offset.0 + len
        };
        match event.kind {
            EventKind::Flush { kind, target: FlushTarget::Pool(place) } if LineId::of(place) == line => match kind {
                FlushKind::Clflush => return Ok(durable),
                FlushKind::Clwb | FlushKind::Clflushopt => flush_pending = Some(event.thread),
                FlushKind::Cldemote => {}
            },
            EventKind::Fence { .. } | EventKind::Rmw { .. } if flush_pending == Some(event.thread) => {
                return Ok(durable);
            }
            EventKind::Fence { .. } | EventKind::Rmw { .. } if event.thread == store.thread => epoch_over = true,
            EventKind::Msync { place, len } if covers(place, len) => return Ok(durable),
            EventKind::Fsync { pool, .. } if pool == line.pool => return Ok(durable),
            _ => {}
        }
        let again = StoreInfo::of(id, &event).is_some_and(|other| other.touches(line));
        if again && epoch_over && flush_pending.is_none() {
            durable = StoreFate::ByAccident;
        }
    }
    Ok(StoreFate::Never)
}
