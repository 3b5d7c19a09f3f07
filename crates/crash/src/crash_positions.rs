//! Stretches of a trace in which a recovery is judged by different standards: by the operation that was under way, for example.
//! What was learnt from a run in one says nothing about another.

use trace::event::EventId;

/// Where one position ends and the next begins. Without any, the whole trace is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashPositions {
    /// Ascending.
    boundaries: Vec<EventId>,
}

impl CrashPositions {
    /// Each of these events is the first of its position.
    pub fn new(mut boundaries: Vec<EventId>) -> CrashPositions {
        boundaries.sort_unstable();
        CrashPositions { boundaries }
    }

    /// The position of a crash just before this event.
    pub fn number(&self, at: EventId) -> u64 {
        self.boundaries.partition_point(|boundary| *boundary <= at) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_are_numbered_along_the_trace() {
        let positions = CrashPositions::new(vec![EventId(20), EventId(5), EventId(5)]);
        let numbers = [0, 4, 5, 19, 20, 99].map(|at| positions.number(EventId(at)));
        assert_eq!(numbers, [0, 0, 2, 2, 3, 3]);
        assert_eq!(CrashPositions::default().number(EventId(7)), 0);
    }
}
