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

/// The borders of all operations of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Borders {
    /// Where each begins and ends: the numbers of these events.
    operations: Vec<(EventId, EventId)>,
}

impl Borders {
    /// One that never ended lasts to the end of the trace.
    pub fn of(reader: &TraceReader) -> Result<Borders, ReadError> {
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
