//! The steps of the workload around a crash.

use finding::evidence::Operation;
use trace::event::{EventId, EventKind};
use trace::{ReadError, TraceReader};

/// How far to look for the boundaries of operations.
const FAR: u64 = 200_000;
/// Operations before the one that power failed in, and after it.
const BEFORE: usize = 4;
const AFTER: usize = 3;

/// The operations around a crash; none if the recording has none nearby. `text` knows their input.
pub fn around(
    reader: &TraceReader,
    crash: EventId,
    text: &dyn Fn(u64) -> Option<String>,
) -> Result<Vec<Operation>, ReadError> {
    let mut all: Vec<Operation> = Vec::new();
    let mut events = reader.events_near(EventId(crash.0.saturating_sub(FAR))..EventId(crash.0.saturating_add(FAR)));
    let mut begun_after = 0;
    while let Some((id, event)) = events.next_with_id()? {
        match event.kind {
            EventKind::OperationBegin { index } => {
                begun_after += usize::from(id >= crash);
                if begun_after > AFTER {
                    break;
                }
                all.push(Operation { index, text: text(index), begin: Some(id), end: None, crashed: false });
            }
            EventKind::OperationEnd { index } => match all.iter_mut().rev().find(|known| known.index == index) {
                Some(known) => known.end = Some(id),
                None => all.push(Operation { index, text: text(index), begin: None, end: Some(id), crashed: false }),
            },
            _ => {}
        }
    }
    for operation in &mut all {
        let begun = operation.begin.is_none_or(|begin| begin < crash);
        operation.crashed = begun && operation.end.is_none_or(|end| end >= crash);
    }
    let first_later = all.iter().position(|operation| operation.begin.is_some_and(|begin| begin >= crash));
    let so_far = first_later.unwrap_or(all.len());
    all.drain(..so_far.saturating_sub(BEFORE + 1));
    Ok(all)
}
