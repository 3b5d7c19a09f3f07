//! Where among the operations a crash came.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trace::event::EventId;

/// What was going on when power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrashPosition {
    /// No operation had begun.
    Before,
    /// This one was under way: it may have happened or not.
    During(usize),
    /// This one was over, and the next had not begun: it must have happened.
    After(usize),
}

impl CrashPosition {
    /// The first operation that is still to come.
    pub fn next(self) -> usize {
        match self {
            CrashPosition::Before => 0,
            CrashPosition::During(number) | CrashPosition::After(number) => number + 1,
        }
    }

    /// Crashes in positions with the same number are judged by the same answers.
    pub fn number(self) -> u64 {
        match self {
            CrashPosition::Before => 0,
            CrashPosition::During(number) => number as u64 * 2 + 1,
            CrashPosition::After(number) => number as u64 * 2 + 2,
        }
    }
}

/// Parts of a trace in which a recovery is judged by different standards: by the operation that was under way, for example.
/// What a run in one shows says nothing about another.
///
/// Where one position ends and the next begins. Without any, the whole trace is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashPositions {
    /// Ascending.
    boundaries: Vec<EventId>,
    /// The numbers of positions whose standard has changed.
    renewed: BTreeMap<u64, u64>,
    renewals: u64,
}

impl CrashPositions {
    /// Each of these events is the first of its position.
    pub fn new(mut boundaries: Vec<EventId>) -> CrashPositions {
        boundaries.sort_unstable();
        CrashPositions { boundaries, ..CrashPositions::default() }
    }

    /// From now on the position of a crash just before this event is judged by another standard: what was found out there holds no longer.
    pub fn renew(&mut self, at: EventId) {
        self.renewals += 1;
        self.renewed.insert(self.place(at), self.boundaries.len() as u64 + self.renewals);
    }

    /// The position of a crash just before this event.
    pub fn number(&self, at: EventId) -> u64 {
        let place = self.place(at);
        self.renewed.get(&place).copied().unwrap_or(place)
    }

    fn place(&self, at: EventId) -> u64 {
        self.boundaries.partition_point(|boundary| *boundary <= at) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinct() {
        let positions =
            [CrashPosition::Before, CrashPosition::During(0), CrashPosition::After(0), CrashPosition::During(1)];
        assert_eq!(positions.map(CrashPosition::number), [0, 1, 2, 3]);
        assert_eq!(positions.map(CrashPosition::next), [0, 1, 1, 2]);
    }

    #[test]
    fn positions_are_numbered_along_the_trace() {
        let positions = CrashPositions::new(vec![EventId(20), EventId(5), EventId(5)]);
        let numbers = [0, 4, 5, 19, 20, 99].map(|at| positions.number(EventId(at)));
        assert_eq!(numbers, [0, 0, 2, 2, 3, 3]);
        assert_eq!(CrashPositions::default().number(EventId(7)), 0);
    }

    #[test]
    fn a_renewed_position_has_a_number_of_its_own() {
        let mut positions = CrashPositions::new(vec![EventId(5), EventId(20)]);
        let before = [0, 5, 20].map(|at| positions.number(EventId(at)));
        positions.renew(EventId(7));
        let once = positions.number(EventId(5));
        positions.renew(EventId(6));
        let twice = positions.number(EventId(5));
        assert_eq!([0, 20].map(|at| positions.number(EventId(at))), [before[0], before[2]]);
        assert!(!before.contains(&once) && !before.contains(&twice) && once != twice);
    }
}
