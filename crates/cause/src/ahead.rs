//! Which failing states other workers look into while the first, which alone decides, is not there yet. It finds their verdicts in what all of
//! them know (`verdict_cache`), so that the causes are those that it would have found alone.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crash::outcome::PointOutcome;

/// How many pieces each worker gets, about: few enough that neighbours, which often have one cause, stay together.
const PIECES: usize = 8;

/// Failing states are numbered through all outcomes.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// By outcome, the number of its first state; and of all states.
    first: Vec<usize>,
    piece: usize,
    /// The first state that nobody has taken.
    free: AtomicUsize,
    /// Where the first worker is.
    reached: AtomicUsize,
}

/// Failing states of one outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub outcome: usize,
    /// Among those of the outcome.
    pub states: Range<usize>,
}

impl Ahead {
    pub fn new(outcomes: &[PointOutcome], workers: usize) -> Ahead {
        Ahead::of(outcomes.iter().map(|outcome| outcome.failing.len()), workers)
    }

    fn of(states: impl Iterator<Item = usize>, workers: usize) -> Ahead {
        let mut first = vec![0];
        for count in states {
            first.push(first[first.len() - 1] + count);
        }
        let piece = (first[first.len() - 1] / (workers.max(1) * PIECES)).max(1);
        Ahead { first, piece, free: AtomicUsize::new(0), reached: AtomicUsize::new(0) }
    }

    pub fn number(&self, outcome: usize, state: usize) -> usize {
        self.first[outcome] + state
    }

    /// The first worker begins with this state: nobody else need.
    pub fn reach(&self, state: usize) {
        self.reached.store(state, Ordering::Relaxed);
        self.free.fetch_max(state + 1, Ordering::Relaxed);
    }

    /// The first worker has taken them all.
    pub fn end(&self) {
        self.reach(self.first[self.first.len() - 1]);
    }

    /// Is the first worker at this state, or beyond?
    pub fn is_reached(&self, state: usize) -> bool {
        self.reached.load(Ordering::Relaxed) >= state
    }

    /// What one of the others shall look into next.
    pub fn next(&self) -> Option<Vec<Part>> {
        let all = self.first[self.first.len() - 1];
        let from = self.free.fetch_add(self.piece, Ordering::Relaxed);
        (from < all).then(|| self.parts(from..(from + self.piece).min(all)))
    }

    fn parts(&self, states: Range<usize>) -> Vec<Part> {
        let of = |(outcome, bounds): (usize, &[usize])| {
            let (from, to) = (states.start.max(bounds[0]), states.end.min(bounds[1]));
            (from < to).then(|| Part { outcome, states: from - bounds[0]..to - bounds[0] })
        };
        self.first.windows(2).enumerate().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_given_out_once_in_order() {
        let ahead = Ahead::of([3, 0, 40, 1].into_iter(), 2);
        let parts: Vec<Part> = std::iter::from_fn(|| ahead.next()).flatten().collect();
        let numbers: Vec<usize> =
            parts.iter().flat_map(|part| part.states.clone().map(|state| ahead.number(part.outcome, state))).collect();
        assert_eq!(numbers, (0..44).collect::<Vec<_>>());
        assert_eq!(parts[0], Part { outcome: 0, states: 0..2 });
    }

    #[test]
    fn what_the_first_worker_has_reached_is_not_given_out() {
        let ahead = Ahead::of([10].into_iter(), 1);
        ahead.reach(4);
        assert!(ahead.is_reached(4) && !ahead.is_reached(5));
        assert_eq!(ahead.next(), Some(vec![Part { outcome: 0, states: 5..6 }]));
        ahead.end();
        assert_eq!((ahead.next(), ahead.is_reached(9)), (None, true));
    }
}
