//! The flush and the fence that would make a failing state impossible, tried on the trace.

use crash::walk::{Rules, Walk, WalkError};
pub use finding::failure::Remedy;
use persistency::tracker::Tracker;
use trace::event::{Event, EventId, EventKind, FenceKind, FlushKind, FlushTarget};
use trace::{ReadError, TraceReader};

use crate::store_history::StoreInfo;
use crate::verdict_cache::VerdictCache;

/// Where to insert it, checked: the missing stores are then guaranteed at the crash point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    pub remedy: Remedy,
    pub after: StoreInfo,
    /// The store that must not come first; none if that is not known.
    pub before: Option<StoreInfo>,
}

/// The smallest remedy that works.
pub fn find(
    memory: &mut VerdictCache,
    reader: &TraceReader,
    rules: Rules,
    at: EventId,
    missing: &[StoreInfo],
    present: &[StoreInfo],
) -> Result<Option<Repair>, WalkError> {
    let Some(&after) = missing.last() else { return Ok(None) };
    let before = present.iter().rev().find(|store| store.event > after.event).copied();
    let place = before.map_or(EventId(after.event.0 + 1), |store| store.event);
    let walk = memory.plain_walk_to(reader, rules, place.min(at))?;
    for remedy in [Remedy::Fence, Remedy::FlushAndFence] {
        if works(&walk, reader, at, missing, place, remedy)? {
            return Ok(Some(Repair { remedy, after, before }));
        }
    }
    Ok(None)
}

/// `walk` is at the place, or at the crash if that is not after it.
fn works(
    walk: &Walk<'_>,
    reader: &TraceReader,
    at: EventId,
    missing: &[StoreInfo],
    place: EventId,
    remedy: Remedy,
) -> Result<bool, ReadError> {
    let mut tracker = walk.tracker().copy();
    let mut events = reader.events_near(walk.at()..at);
    while let Some((id, event)) = events.next_with_id()? {
        if id == place {
            insert(&mut tracker, id, missing, remedy);
        }
        tracker.apply(id, &event);
    }
    if place == at {
        insert(&mut tracker, at, missing, remedy);
    }
    let still_pending = |store: &StoreInfo| {
        tracker.line(store.line).is_some_and(|line| line.stores().iter().any(|pending| pending.event == store.event))
    };
    Ok(!missing.iter().any(still_pending))
}

fn insert(tracker: &mut Tracker, id: EventId, missing: &[StoreInfo], remedy: Remedy) {
    for store in missing {
        let event = |kind| Event { thread: store.thread, context: store.site.context, pc: store.site.pc, kind };
        if remedy == Remedy::FlushAndFence {
            let target = FlushTarget::Pool(store.line.start());
            tracker.apply(id, &event(EventKind::Flush { kind: FlushKind::Clwb, target }));
        }
        tracker.apply(id, &event(EventKind::Fence { kind: FenceKind::Sfence }));
    }
}
