//! The flush and the fence that would make a failing state impossible, tried on the trace.

use crash::walk::Rules;
pub use finding::failure::Remedy;
use persistency::domain::Detail;
use persistency::tracker::Tracker;
use trace::event::{Event, EventId, EventKind, FenceKind, FlushKind, FlushTarget};
use trace::{ReadError, TraceReader};

use crate::store_history::StoreInfo;

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
    reader: &TraceReader,
    rules: Rules,
    at: EventId,
    missing: &[StoreInfo],
    present: &[StoreInfo],
) -> Result<Option<Repair>, ReadError> {
    let Some(&after) = missing.last() else { return Ok(None) };
    let before = present.iter().rev().find(|store| store.event > after.event).copied();
    for remedy in [Remedy::Fence, Remedy::FlushAndFence] {
        let place = before.map_or(EventId(after.event.0 + 1), |store| store.event);
        if works(reader, rules, at, missing, place, remedy)? {
            return Ok(Some(Repair { remedy, after, before }));
        }
    }
    Ok(None)
}

fn works(
    reader: &TraceReader,
    rules: Rules,
    at: EventId,
    missing: &[StoreInfo],
    place: EventId,
    remedy: Remedy,
) -> Result<bool, ReadError> {
    let mut tracker = Tracker::new(rules.model.build(rules.fences), Detail::Stores);
    let mut events = reader.events_in(EventId(0)..at);
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
