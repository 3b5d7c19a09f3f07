//! Threads whose stores one recording has put into one order.

use finding::note::RunNote;
use rustc_hash::FxHashSet;
use trace::event::EventKind;
use trace::{ReadError, TraceReader};

/// Says so if several threads stored to PM: their interleaving decides which states are tested.
pub(crate) fn interleaved(reader: &TraceReader) -> Result<Option<RunNote>, ReadError> {
    let mut threads = FxHashSet::default();
    let mut events = reader.events();
    while let Some(event) = events.next()? {
        if matches!(event.kind, EventKind::Store { .. } | EventKind::Rmw { .. }) {
            threads.insert(event.thread);
        }
    }
    Ok((threads.len() > 1).then_some(RunNote::Interleaved { threads: threads.len() as u64 }))
}
