//! Where among the operations a crash came.

use crash::scenes::Scenes;
use trace::event::{EventId, EventKind};
use trace::{ReadError, TraceReader};

/// What was going on when power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scene {
    /// No operation had begun.
    Before,
    /// This one was under way: it may have happened or not.
    During(usize),
    /// This one was over, and the next had not begun: it must have happened.
    After(usize),
}

impl Scene {
    /// The first operation that is still to come.
    pub fn next(self) -> usize {
        match self {
            Scene::Before => 0,
            Scene::During(number) | Scene::After(number) => number + 1,
        }
    }

    /// Crashes in scenes with the same number are judged by the same answers.
    pub fn number(self) -> u64 {
        match self {
            Scene::Before => 0,
            Scene::During(number) => number as u64 * 2 + 1,
            Scene::After(number) => number as u64 * 2 + 2,
        }
    }
}

/// What says where operations begin and end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BorderSource {
    /// Reads of standard input, or marks in the program's code: events of their own.
    #[default]
    Events,
    /// Calls of watched functions. Without the name of an end, the return is the end.
    Calls { begin: String, end: Option<String> },
}

/// The borders of all operations of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Borders {
    /// Where each begins and ends: the numbers of these events.
    operations: Vec<(EventId, EventId)>,
}

impl Borders {
    pub fn of(reader: &TraceReader, source: &BorderSource) -> Result<Borders, ReadError> {
        match source {
            BorderSource::Events => Borders::of_events(reader),
            BorderSource::Calls { begin, end } => Borders::of_calls(reader, begin, end.as_deref()),
        }
    }

    /// A call of `begin` inside an operation belongs to it: functions that call themselves do not begin another.
    fn of_calls(reader: &TraceReader, begin: &str, end: Option<&str>) -> Result<Borders, ReadError> {
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
        Ok(Borders { operations })
    }

    /// One that never ended lasts to the end of the trace.
    fn of_events(reader: &TraceReader) -> Result<Borders, ReadError> {
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
        Ok(Borders { operations })
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

    /// The same, as a search needs to know them: [`Scene::number`] is the number of the scene there.
    pub fn scenes(&self) -> Scenes {
        Scenes::new(self.operations.iter().flat_map(|&(begin, end)| [EventId(begin.0 + 1), end]).collect())
    }

    /// The scene of a crash just before the event `at`.
    pub fn scene(&self, at: EventId) -> Scene {
        // The line was read, but nothing of the operation was done, at the event that follows its begin.
        let begun = self.operations.partition_point(|&(begin, _)| begin < at);
        match begun.checked_sub(1) {
            None => Scene::Before,
            // The event at which it ends has not happened; but it is over.
            Some(last) if at >= self.operations[last].1 => Scene::After(last),
            Some(last) => Scene::During(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_along_a_trace() {
        let borders = Borders { operations: vec![(EventId(10), EventId(20)), (EventId(21), EventId(30))] };
        let scenes = [(0, Scene::Before), (10, Scene::Before), (11, Scene::During(0)), (19, Scene::During(0))];
        for (at, scene) in scenes {
            assert_eq!(borders.scene(EventId(at)), scene, "{at}");
        }
        for at in 0..50 {
            assert_eq!(borders.scenes().number(EventId(at)), borders.scene(EventId(at)).number(), "{at}");
        }
        for (at, scene) in [(20, Scene::After(0)), (21, Scene::After(0)), (22, Scene::During(1)), (40, Scene::After(1))]
        {
            assert_eq!(borders.scene(EventId(at)), scene, "{at}");
        }
    }

    #[test]
    fn numbers_are_distinct() {
        let scenes = [Scene::Before, Scene::During(0), Scene::After(0), Scene::During(1)];
        assert_eq!(scenes.map(Scene::number), [0, 1, 2, 3]);
        assert_eq!(scenes.map(Scene::next), [0, 1, 1, 2]);
    }
}
