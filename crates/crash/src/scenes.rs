//! Stretches of a trace in which a recovery is judged by different standards: by the operation that was under way, for example.
//! What was learnt from a run in one says nothing about another.

use trace::event::EventId;

/// Where one scene ends and the next begins. Without any, the whole trace is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenes {
    /// Ascending.
    borders: Vec<EventId>,
}

impl Scenes {
    /// Each of these events is the first of its scene.
    pub fn new(mut borders: Vec<EventId>) -> Scenes {
        borders.sort_unstable();
        Scenes { borders }
    }

    /// The scene of a crash just before this event.
    pub fn number(&self, at: EventId) -> u64 {
        self.borders.partition_point(|border| *border <= at) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_are_numbered_along_the_trace() {
        let scenes = Scenes::new(vec![EventId(20), EventId(5), EventId(5)]);
        let numbers = [0, 4, 5, 19, 20, 99].map(|at| scenes.number(EventId(at)));
        assert_eq!(numbers, [0, 0, 2, 2, 3, 3]);
        assert_eq!(Scenes::default().number(EventId(7)), 0);
    }
}
