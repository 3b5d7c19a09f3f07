//! Where among the operations a crash came.

use serde::{Deserialize, Serialize};
use trace::event::{EventId, EventKind};
use trace::{ReadError, TraceReader};
use verdict::position::{CrashPosition, CrashPositions};

/// What says where operations begin and end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BoundarySource {
    /// Reads of standard input, or marks in the program's code: events of their own.
    #[default]
    Events,
    /// Calls of watched functions. Without the name of an end, the return is the end.
    Calls { begin: String, end: Option<String> },
}

/// The boundaries of all operations of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationBoundaries {
    /// Where each begins and ends: the numbers of these events.
    operations: Vec<(EventId, EventId)>,
}

impl OperationBoundaries {
    pub fn of(reader: &TraceReader, source: &BoundarySource) -> Result<OperationBoundaries, ReadError> {
        match source {
            BoundarySource::Events => OperationBoundaries::of_events(reader),
            BoundarySource::Calls { begin, end } => OperationBoundaries::of_calls(reader, begin, end.as_deref()),
        }
    }

    /// A call of `begin` inside an operation belongs to it: functions that call themselves do not begin another.
    fn of_calls(reader: &TraceReader, begin: &str, end: Option<&str>) -> Result<OperationBoundaries, ReadError> {
        let last = EventId(reader.event_count());
        let mut operations: Vec<(EventId, EventId)> = Vec::new();
        // How deep in calls of `begin`; 0: outside.
        let mut depth = 0;
        let mut events = reader.events();
        while let Some((id, event)) = events.next_with_id()? {
            let (watch, returns) = match event.kind {
                EventKind::Call { watch, .. } => (watch, false),
                EventKind::Return { watch, .. } => (watch, true),
                _ => continue,
            };
            let name = reader.tables().watches.get(watch.0 as usize).map(String::as_str);
            let (is_begin, is_end) = (name == Some(begin), name.is_some() && name == end);
            if is_end && !returns && depth > 0 {
                depth = 0;
            } else if is_begin && returns && end.is_none() && depth > 0 {
                depth -= 1;
            } else if is_begin && !returns {
                // Without its end, an operation lasts until the next.
                let open = depth > 0;
                depth = if end.is_some() { 1 } else { depth + 1 };
                if open && end.is_none() {
                    continue;
                }
                if let Some(before) = operations.last_mut().filter(|_| open) {
                    before.1 = id;
                }
                operations.push((id, last));
                continue;
            } else {
                continue;
            }
            if let Some(operation) = operations.last_mut().filter(|_| depth == 0) {
                operation.1 = id;
            }
        }
        Ok(OperationBoundaries { operations })
    }

    /// One that never ended lasts to the end of the trace.
    fn of_events(reader: &TraceReader) -> Result<OperationBoundaries, ReadError> {
        let end = EventId(reader.event_count());
        let mut operations: Vec<(EventId, EventId)> = Vec::new();
        let mut events = reader.events();
        while let Some((id, event)) = events.next_with_id()? {
            match event.kind {
                EventKind::OperationBegin { .. } => operations.push((id, end)),
                EventKind::OperationEnd { index } => {
                    if let Some(operation) = operations.get_mut(index as usize) {
                        operation.1 = id;
                    }
                }
                _ => {}
            }
        }
        Ok(OperationBoundaries { operations })
    }

    pub fn count(&self) -> usize {
        self.operations.len()
    }

    /// The first event of an operation.
    pub fn begin(&self, number: usize) -> Option<EventId> {
        self.operations.get(number).map(|&(begin, _)| begin)
    }

    /// The event that ends an operation.
    pub fn end(&self, number: usize) -> Option<EventId> {
        self.operations.get(number).map(|&(_, end)| end)
    }

    /// The same, as a search needs to know them: [`CrashPosition::number`] is the number of the position there.
    pub fn positions(&self) -> CrashPositions {
        CrashPositions::new(self.operations.iter().flat_map(|&(begin, end)| [EventId(begin.0 + 1), end]).collect())
    }

    /// The position of a crash just before the event `at`.
    pub fn position(&self, at: EventId) -> CrashPosition {
        // The line was read, but nothing of the operation was done, at the event that follows its begin.
        let begun = self.operations.partition_point(|&(begin, _)| begin < at);
        match begun.checked_sub(1) {
            None => CrashPosition::Before,
            // The event at which it ends has not happened; but it is over.
            Some(last) if at >= self.operations[last].1 => CrashPosition::After(last),
            Some(last) => CrashPosition::During(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_along_a_trace() {
        let boundaries =
            OperationBoundaries { operations: vec![(EventId(10), EventId(20)), (EventId(21), EventId(30))] };
        let positions = [
            (0, CrashPosition::Before),
            (10, CrashPosition::Before),
            (11, CrashPosition::During(0)),
            (19, CrashPosition::During(0)),
        ];
        for (at, position) in positions {
            assert_eq!(boundaries.position(EventId(at)), position, "{at}");
        }
        for at in 0..50 {
            assert_eq!(boundaries.positions().number(EventId(at)), boundaries.position(EventId(at)).number(), "{at}");
        }
        for (at, position) in [
            (20, CrashPosition::After(0)),
            (21, CrashPosition::After(0)),
            (22, CrashPosition::During(1)),
            (40, CrashPosition::After(1)),
        ] {
            assert_eq!(boundaries.position(EventId(at)), position, "{at}");
        }
    }
}
