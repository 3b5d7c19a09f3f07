//! Which of the states that are alike are tried.
//!
//! A program does the same thing over and over, and the paper's clusters (Witcher §4.4) show that repetitions are one bug. So states are
//! put into kinds: the way in which they break a pair, the code that made the store (call path and instruction), that of the newest store
//! on the other side, and whether something old lies where the missing one should be (a log whose end is there before its records
//! shows only once its room is used again).
//!
//! Of the epochs in which a kind comes up the 1st, 4th, 16th, 64th … are taken, since a bug may need what only a longer run brings about, and
//! the last, since it may be covered up by later operations. Of one epoch at most [`IN_ONE_EPOCH`] states of a kind are taken.
//! Of stores that were pending at an earlier fence of the operation, which are paired with everything that follows, it is one.

use std::cmp::Reverse;

use persistency::line::LineId;
use persistency::point::Content;
use persistency::states::{Base, CrashState};
use rustc_hash::{FxHashMap, FxHashSet};
use trace::event::EventId;

/// Loops write many pieces: of a long one the newest must do.
const IN_ONE_EPOCH: u64 = 8;

/// Code that stores, by first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SiteNo(pub u32);

/// How a state breaks pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Nothing but this store and what must come before it.
    Least,
    /// Everything but this store and what must come after it.
    Most,
}

/// States that break pairs in one way, with stores by the same code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PairKind {
    pub way: Way,
    pub site: SiteNo,
    /// The newest store on the other side.
    pub other: SiteNo,
    /// It was not pending at an earlier fence of the operation.
    pub is_fresh: bool,
    /// The missing store replaces something.
    pub over_old: bool,
}

/// A pending store that makes a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub event: EventId,
    pub line: LineId,
    /// Among the pending stores of its line.
    pub place: u32,
}

/// A state of a point that may be tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub way: Way,
    epoch: u64,
    /// Its number.
    pub point: u64,
    pub candidate: Candidate,
}

impl Pick {
    pub fn state(&self) -> CrashState {
        let Candidate { line, place, .. } = self.candidate;
        let (base, kept) = match self.way {
            Way::Least => (Base::Guaranteed, place + 1),
            Way::Most => (Base::Everything, place),
        };
        CrashState { base, lines: vec![(line, Content::whole(kept))] }
    }
}

/// The last epoch in which a kind came up.
#[derive(Debug, Default)]
struct Last {
    /// Of those in which it did, from 1.
    number: u64,
    epoch: u64,
    picks: Vec<Pick>,
}

/// The kinds that came up so far.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    /// The first so many epochs are taken.
    times: u64,
    epoch: u64,
    kinds: FxHashMap<PairKind, Last>,
    taken: Vec<Pick>,
}

impl Kinds {
    pub fn new(times: u64) -> Self {
        Kinds { times, ..Kinds::default() }
    }

    pub fn next_epoch(&mut self) {
        self.epoch += 1;
    }

    /// A state of this kind is possible at a point; points come in their order.
    pub fn meet(&mut self, kind: PairKind, point: u64, candidate: Candidate) {
        let last = self.kinds.entry(kind).or_default();
        if last.number == 0 || last.epoch != self.epoch {
            if last.number <= self.times || is_power_of_four(last.number) {
                self.taken.append(&mut last.picks);
            }
            last.picks.clear();
            (last.number, last.epoch) = (last.number + 1, self.epoch);
        }
        let pick = Pick { way: kind.way, epoch: self.epoch, point, candidate };
        let same =
            |known: &&mut Pick| (known.candidate.event, known.candidate.line) == (candidate.event, candidate.line);
        match last.picks.iter_mut().rev().find(same) {
            // Later in the epoch the program got further.
            Some(known) if kind.way == Way::Most => *known = pick,
            Some(_) => {}
            None => {
                let most = if kind.is_fresh { IN_ONE_EPOCH } else { 1 };
                if (last.picks.len() as u64) < most.max(self.times) {
                    last.picks.push(pick);
                }
            }
        }
    }

    /// What is to be tried, by points, the newest stores first.
    pub fn picks(self) -> Vec<Pick> {
        let mut picks = self.taken;
        picks.extend(self.kinds.into_values().flat_map(|last| last.picks));
        picks
            .sort_by_key(|Pick { way, point, candidate, .. }| (*point, *way, Reverse(candidate.event), candidate.line));
        // What a store alone makes of PM is the same until the next fence, whatever its kinds.
        let mut least = FxHashSet::default();
        picks.retain(|Pick { way, epoch, candidate, .. }| {
            *way == Way::Most || least.insert((*epoch, candidate.event, candidate.line))
        });
        picks
    }
}

fn is_power_of_four(number: u64) -> bool {
    number.is_power_of_two() && number.trailing_zeros().is_multiple_of(2)
}
