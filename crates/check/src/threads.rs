//! Threads whose stores one recording has put into one order.

use std::collections::BTreeMap;

use finding::note::RunNote;
use trace::event::{EventId, EventKind, ThreadId};
use trace::{ReadError, TraceReader};

/// When a thread lived, and whether it stored to PM.
#[derive(Clone, Copy, Debug)]
struct Life {
    start: EventId,
    /// None: until the end of the recording.
    end: Option<EventId>,
    stores: bool,
}

/// Says so if several threads stored to PM that lived at the same time: their interleaving decides which states are tested.
pub(crate) fn interleaved(reader: &TraceReader) -> Result<Option<RunNote>, ReadError> {
    let mut lives: BTreeMap<ThreadId, Life> = BTreeMap::new();
    let mut events = reader.events();
    while let Some((id, event)) = events.next_with_id()? {
        let life = lives.entry(event.thread).or_insert(Life { start: id, end: None, stores: false });
        match event.kind {
            EventKind::Store { .. } | EventKind::Rmw { .. } => life.stores = true,
            EventKind::ThreadEnd | EventKind::ProcessExit { .. } => life.end = Some(id),
            _ => {}
        }
    }
    let mut storing: Vec<Life> = lives.into_values().filter(|life| life.stores).collect();
    storing.sort_by_key(|life| life.start);
    let threads = together(&storing);
    Ok((threads > 1).then_some(RunNote::Interleaved { threads }))
}

/// How many of them lived at the same time as another. They are in the order of their starts.
fn together(lives: &[Life]) -> u64 {
    let overlap = |one: &Life, other: &Life| one.end.is_none_or(|end| other.start < end);
    let alone = |at: usize| {
        !lives[..at].iter().any(|earlier| overlap(earlier, &lives[at]))
            && !lives[at + 1..].first().is_some_and(|next| overlap(&lives[at], next))
    };
    (0..lives.len()).filter(|&at| !alone(at)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(start: u64, end: Option<u64>) -> Life {
        Life { start: EventId(start), end: end.map(EventId), stores: true }
    }

    #[test]
    fn only_threads_that_live_at_the_same_time_interleave() {
        // One process after the other.
        assert_eq!(together(&[life(0, Some(10)), life(20, Some(30)), life(31, None)]), 0);
        assert_eq!(together(&[life(0, None), life(20, Some(30)), life(31, None)]), 3);
        assert_eq!(together(&[life(0, Some(10)), life(20, Some(40)), life(30, Some(35))]), 2);
        assert_eq!(together(&[life(0, Some(10))]), 0);
    }
}
