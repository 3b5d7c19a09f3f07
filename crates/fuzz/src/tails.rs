//! What a program does when its input is over, and whether a run needs it.
//!
//! A program that closes its pool frees what opening it allocated. In a fork, each page of that is copied first: with libpmemobj this was nine
//! tenths of the page faults of a run. Where it is the same after every input, most runs are ended there.
//!
//! Samples decide: mutants that are run both ways. What a run counts beyond the end of its input is its *tail*. The tail says nothing new if it
//! consists of as many PM operations as those before it, and takes no edge that none of them took. A program that only collects its input and
//! works when it has all of it has a tail that differs from input to input, so that its runs are not cut.

use wire::cover::EDGES;

use crate::coverage::{Covered, Trail};

/// Samples in a row that agree, before runs are cut.
const AGREED: u32 = 8;
/// One in so many mutants is a sample: while nothing is known, and later.
const FIRST: u64 = 4;
const LATER: u64 = 16;

/// How to run a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// To its end.
    Whole,
    /// Up to the end of its input.
    Cut,
    /// Both, for [`Tails::learn`].
    Sample,
}

/// What is known of the tails of a campaign.
#[derive(Debug, Default)]
pub struct Tails {
    asked: u64,
    agreed: u32,
    pm_operations: u64,
    /// Edges that a tail took, as one bit each.
    edges: Vec<u8>,
    /// What cut runs have covered: their counters are lower than those of whole runs, and so of other classes.
    cut: Covered,
}

impl Tails {
    pub fn length(&mut self) -> Length {
        self.asked += 1;
        match self.agreed >= AGREED {
            true if self.asked.is_multiple_of(LATER) => Length::Sample,
            true => Length::Cut,
            false if self.asked.is_multiple_of(FIRST) => Length::Sample,
            false => Length::Whole,
        }
    }

    /// The maps of a run that was cut, and of one with the same input that was not.
    pub fn learn(&mut self, cut: &[u8], whole: &[u8]) {
        self.edges.resize(EDGES, 0);
        let (cut_edges, cut_pm) = cut.split_at(EDGES.min(cut.len()));
        let (edges, pm) = whole.split_at(EDGES.min(whole.len()));
        // Counters go from 255 to 1.
        let more = |(cut, whole): (&u8, &u8)| (i64::from(*whole) - i64::from(*cut)).rem_euclid(255) as u64;
        let pm_operations = cut_pm.iter().zip(pm).filter(|(cut, whole)| cut != whole).map(more).sum();
        let mut is_known = pm_operations == self.pm_operations;
        self.pm_operations = pm_operations;
        for (taken, _) in
            self.edges.iter_mut().zip(cut_edges.iter().zip(edges)).filter(|(_, (cut, whole))| cut != whole)
        {
            is_known &= *taken != 0;
            *taken = 1;
        }
        self.agreed = if is_known { self.agreed + 1 } else { 0 };
    }

    /// Has a run that was cut shown something that neither whole runs nor others that were cut have shown? From now on it is known.
    pub fn is_news(&mut self, trail: &Trail, covered: &Covered) -> bool {
        let news = trail.counters.iter().any(|counter| !covered.has(*counter) && !self.cut.has(*counter));
        if news {
            self.cut.add(trail);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use wire::cover::COVER_BYTES;

    use super::*;

    fn maps(counters: &[(usize, u8)]) -> Vec<u8> {
        let mut maps = vec![0; COVER_BYTES];
        counters.iter().for_each(|(at, counter)| maps[*at] = *counter);
        maps
    }

    /// Every mutant of so many that is a sample has this tail.
    fn sampled(tails: &mut Tails, mutants: u64, tail: impl Fn(u64) -> (Vec<u8>, Vec<u8>)) -> u64 {
        let mut samples = 0;
        for mutant in 0..mutants {
            if tails.length() == Length::Sample {
                let (cut, whole) = tail(mutant);
                tails.learn(&cut, &whole);
                samples += 1;
            }
        }
        samples
    }

    #[test]
    fn the_same_end_is_left_out() {
        let mut tails = Tails::default();
        // What comes before differs, also where the tail goes; a counter that goes round has still three more.
        let tail = |mutant: u64| {
            let before = [3, 254, 7][mutant as usize % 3];
            let after = [6, 2, 10][mutant as usize % 3];
            (maps(&[(9, 1), (EDGES + 4, before)]), maps(&[(9, 2), (EDGES + 4, after)]))
        };
        // The first one has nothing to agree with.
        sampled(&mut tails, FIRST * u64::from(AGREED + 1), tail);
        assert_eq!(tails.length(), Length::Cut);
        assert!(sampled(&mut tails, 160, tail) <= 11);
        assert_eq!(tails.length(), Length::Cut);
    }

    #[test]
    fn an_end_that_depends_on_the_input_is_not() {
        let mut tails = Tails::default();
        let works_at_the_end = |mutant: u64| (maps(&[]), maps(&[(EDGES + 4, mutant as u8 % 11 + 1)]));
        sampled(&mut tails, 400, works_at_the_end);
        assert_ne!(tails.length(), Length::Cut);
        let goes_elsewhere = |mutant: u64| (maps(&[]), maps(&[(mutant as usize, 1), (EDGES, 1)]));
        sampled(&mut tails, 400, goes_elsewhere);
        assert_ne!(tails.length(), Length::Cut);
    }

    #[test]
    fn one_that_differs_later_brings_whole_runs_back() {
        let mut tails = Tails::default();
        sampled(&mut tails, 100, |_| (maps(&[]), maps(&[(EDGES, 1)])));
        assert_eq!(tails.length(), Length::Cut);
        tails.learn(&maps(&[]), &maps(&[(EDGES, 1), (7, 1)]));
        assert_ne!(tails.length(), Length::Cut);
    }

    #[test]
    fn news_of_cut_runs_are_told_once() {
        let (mut tails, mut covered) = (Tails::default(), Covered::default());
        covered.add(&Trail::of(&maps(&[(1, 2)])));
        assert!(!tails.is_news(&Trail::of(&maps(&[(1, 2)])), &covered));
        // Fewer times than any whole run.
        assert!(tails.is_news(&Trail::of(&maps(&[(1, 1)])), &covered));
        assert!(!tails.is_news(&Trail::of(&maps(&[(1, 1)])), &covered));
        assert!(tails.is_news(&Trail::of(&maps(&[(2, 1)])), &covered));
    }
}
