//! PM coverage of a recorded daemon in each workload: the transitions between its stores, flushes and fences.

use std::hash::{DefaultHasher, Hash, Hasher};

use fs::campaign::Transition;
use operation::boundaries::OperationBoundaries;
use trace::event::{EventId, EventKind};
use trace::{ReadError, TraceReader};

/// Of the steps with these numbers, which follow one another.
pub fn transitions(
    reader: &TraceReader,
    boundaries: &OperationBoundaries,
    steps: std::ops::Range<usize>,
) -> Result<Vec<Transition>, ReadError> {
    let from = boundaries.begin(steps.start).unwrap_or(EventId(0));
    let to = steps.end.checked_sub(1).and_then(|last| boundaries.end(last));
    let mut events = reader.events_in(from..to.unwrap_or(EventId(reader.event_count())));
    let (mut all, mut last) = (Vec::new(), [None; 2]);
    while let Some(event) = events.next()? {
        if !matches!(
            event.kind,
            EventKind::Store { .. } | EventKind::Rmw { .. } | EventKind::Flush { .. } | EventKind::Fence { .. }
        ) {
            continue;
        }
        // With the two before it: call paths have other numbers in another recording.
        let mut hasher = DefaultHasher::new();
        (last, event.pc).hash(&mut hasher);
        all.push(Transition(hasher.finish()));
        last = [last[1], Some(event.pc)];
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}
