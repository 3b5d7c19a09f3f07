//! Which crash points are judged, and in which order: the first occurrence of every failure point, then more and more.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use trace::event::EventId;

use crate::points::{Density, Point};
use crate::survey::{Known, Pick, Survey};

/// Which crash points are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    pub density: Density,
    /// All occurrences at once, in the order of the trace.
    pub every: bool,
    /// No more than so many occurrences of a failure point.
    pub occurrences: Option<u64>,
    /// Points in the creation of a pool as well.
    pub creation: bool,
    /// Only points that lie before or at these events.
    pub from: Option<EventId>,
    pub to: Option<EventId>,
}

impl Default for Selection {
    fn default() -> Self {
        Selection { density: Density::Fences, every: false, occurrences: None, creation: false, from: None, to: None }
    }
}

/// Occurrences of each failure point that are judged together: 1, then 2 to 4, then 5 to 16, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Round(pub u32);

impl Round {
    fn occurrences(self) -> RangeInclusive<u64> {
        let last = |round: u32| 4u64.checked_pow(round).unwrap_or(u64::MAX);
        let first = if self.0 == 0 { 1 } else { last(self.0 - 1).saturating_add(1) };
        first..=last(self.0)
    }
}

impl Selection {
    /// The rounds that have points, and how many.
    pub fn rounds(&self, survey: &Survey, shard: Shard) -> Vec<(Round, u64)> {
        let mut counts: Vec<u64> = Vec::new();
        for (round, _) in self.wanted(survey, shard) {
            let at = round.0 as usize;
            counts.resize(counts.len().max(at + 1), 0);
            counts[at] += 1;
        }
        (0..).map(Round).zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    /// The points of some rounds, in the order of the trace.
    pub fn picks(&self, survey: &Survey, shard: Shard, rounds: &RangeInclusive<Round>) -> Vec<Pick> {
        self.wanted(survey, shard).filter(|(of, _)| rounds.contains(of)).map(|(_, pick)| pick).collect()
    }

    pub(crate) fn wanted<'s>(&self, survey: &'s Survey, shard: Shard) -> impl Iterator<Item = (Round, Pick)> + use<'s> {
        let Selection { every, occurrences, creation, from, to, .. } = *self;
        let wanted = move |point: &Point, known: &Known| {
            (creation || !known.creation)
                && occurrences.is_none_or(|most| point.occurrence <= most)
                && from.is_none_or(|from| point.at >= from)
                && to.is_none_or(|to| point.at <= to)
                && shard.has(point.index)
        };
        survey.points().filter(move |(point, known)| wanted(point, known)).map(move |(point, _)| {
            let round = if every { Round(0) } else { round_of(point.occurrence) };
            (round, Pick { index: point.index, occurrence: point.occurrence })
        })
    }
}

fn round_of(occurrence: u64) -> Round {
    let has = |round: &Round| round.occurrences().contains(&occurrence);
    (0..).map(Round).find(has).expect("the rounds have all numbers from 1 on")
}

/// One of several parts into which the crash points are dealt out, so that several machines can share a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shard {
    /// From 1 to `of`.
    pub number: u64,
    pub of: u64,
}

impl Shard {
    pub const WHOLE: Shard = Shard { number: 1, of: 1 };

    pub fn has(self, index: u64) -> bool {
        index % self.of == self.number - 1
    }
}

impl Default for Shard {
    fn default() -> Self {
        Shard::WHOLE
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a shard; write its number and how many there are, as in `2/3`")]
pub struct BadShard(pub String);

impl FromStr for Shard {
    type Err = BadShard;

    fn from_str(text: &str) -> Result<Self, BadShard> {
        let bad = || BadShard(text.to_owned());
        let (number, of) = text.split_once('/').ok_or_else(bad)?;
        let shard = Shard { number: number.parse().map_err(|_| bad())?, of: of.parse().map_err(|_| bad())? };
        if (1..=shard.of).contains(&shard.number) { Ok(shard) } else { Err(bad()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_grow_fourfold_and_leave_nothing_out() {
        let ranges: Vec<_> = (0..4).map(|round| Round(round).occurrences()).collect();
        assert_eq!(ranges, [1..=1, 2..=4, 5..=16, 17..=64]);
        assert_eq!([1, 2, 4, 5, 16, 17, u64::MAX].map(|n| round_of(n).0), [0, 1, 1, 2, 2, 3, 32]);
    }

    #[test]
    fn shards_deal_out_every_point_once() {
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].map(|text| text.parse().unwrap()).to_vec();
        assert!((0..100).all(|index| shards.iter().filter(|shard| shard.has(index)).count() == 1));
        for wrong in ["0/3", "4/3", "1", "a/b", "1/0", ""] {
            assert_eq!(wrong.parse::<Shard>(), Err(BadShard(wrong.to_owned())), "{wrong}");
        }
    }
}
