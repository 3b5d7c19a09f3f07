//! *few-lines*: states that differ from *guaranteed-only* or from *program-order* on at most *k* lines.
//!
//! Chipmunk (§5.1.2) found all its bugs with at most two writes beyond what was guaranteed. A write there is what one
//! system call leaves in flight; the like of it here is a line, not a store: a record of forty bytes is five stores to one
//! line, and what a bug does not survive is that all five are missing. So a line counts once however many of its stores
//! are there or missing. Lines that go from one extreme to the other come first; then those with some of their stores.
//! Stores are whole and in order; cuts are for *visible*. Lines that were stored to last come before others: lines that nobody ever flushes are many, old, and seldom to blame.

use std::cmp::Reverse;

use persistency::line::LineId;
use persistency::point::{Content, LineView};
use persistency::states::{Base, CrashState};

use super::listed::Listed;
use crate::view::{PointView, everything_of};

/// The contents that a line can deviate to from one base: the other extreme first.
type Deviations = Vec<(LineId, Vec<Content>)>;

pub fn few_lines(view: &PointView<'_>, most: u32, cap: u64) -> Listed {
    let from_guaranteed = deviations(view, Base::Guaranteed);
    let from_everything = deviations(view, Base::Everything);
    let most = most as usize;
    let bases = move |size: usize, part: Part| {
        let guaranteed = sized(Base::Guaranteed, from_guaranteed.clone(), size, part);
        guaranteed.chain(sized(Base::Everything, from_everything.clone(), size, part))
    };
    let again = bases.clone();
    let extremes = (0..=most).flat_map(move |size| bases(size, Part::Extremes));
    let others = (1..=most).flat_map(move |size| again(size, Part::Others));
    let capped = (0..view.lines().len()).any(|index| !view.distinct_contents(index).are_all);
    Listed::new(extremes.chain(others), cap, capped)
}

fn deviations(view: &PointView<'_>, base: Base) -> Deviations {
    let mut lines: Vec<(usize, &LineView<'_>)> = view.lines().iter().enumerate().collect();
    lines.sort_by_key(|(_, line)| Reverse(line.stores().last().map(|store| store.event)));
    let lines = lines.into_iter().map(|(index, line)| {
        let (guaranteed, everything) = (view.bytes(index, Content::default()), view.bytes(index, everything_of(line)));
        let (own, other) = match base {
            Base::Guaranteed => (guaranteed, everything),
            Base::Everything => (everything, guaranteed),
        };
        let distinct = view.distinct_contents(index);
        let mut contents: Vec<_> = distinct.contents.iter().filter(|(_, bytes)| *bytes != own).collect();
        if base == Base::Guaranteed {
            contents.reverse();
        }
        // Stable: those between the extremes stay in the order of their distance from the base.
        contents.sort_by_key(|(_, bytes)| *bytes != other);
        let contents: Vec<Content> = contents.into_iter().map(|(content, _)| *content).collect();
        (line.id(), contents)
    });
    lines.filter(|(_, contents)| !contents.is_empty()).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Each line has the first of its contents.
    Extremes,
    /// At least one has not.
    Others,
}

/// The states in which exactly `size` lines deviate.
fn sized(base: Base, lines: Deviations, size: usize, part: Part) -> impl Iterator<Item = CrashState> {
    combinations(lines.len(), size).flat_map(move |chosen| {
        let chosen: Vec<(LineId, Vec<Content>)> = chosen.into_iter().map(|index| lines[index].clone()).collect();
        let counts: Vec<usize> = chosen.iter().map(|(_, contents)| contents.len()).collect();
        let ways = ways(counts);
        let ways: Box<dyn Iterator<Item = Vec<usize>>> = match part {
            Part::Extremes => Box::new(ways.take(1)),
            Part::Others => Box::new(ways.skip(1)),
        };
        ways.map(move |way| {
            let lines = chosen.iter().zip(way).map(|((id, contents), at)| (*id, contents[at]));
            let mut lines: Vec<(LineId, Content)> = lines.collect();
            lines.sort_unstable_by_key(|&(id, _)| id);
            CrashState { base, lines }
        })
    })
}

/// Every choice of `size` of the numbers below `count`, ascending, in lexicographic order.
pub(super) fn combinations(count: usize, size: usize) -> impl Iterator<Item = Vec<usize>> {
    let first = (size <= count).then(|| (0..size).collect::<Vec<_>>());
    std::iter::successors(first, move |chosen| {
        let at = (0..size).rev().find(|&at| chosen[at] < count - size + at)?;
        let mut next = chosen[..at].to_vec();
        next.extend(chosen[at] + 1..chosen[at] + 1 + size - at);
        Some(next)
    })
}

/// Every way to take one of `counts[i]` things at each place `i`, all first ones first.
fn ways(counts: Vec<usize>) -> impl Iterator<Item = Vec<usize>> {
    std::iter::successors(Some(vec![0; counts.len()]), move |way| {
        let at = (0..counts.len()).rev().find(|&at| way[at] + 1 < counts[at])?;
        let mut next = way.clone();
        next[at] += 1;
        next[at + 1..].fill(0);
        Some(next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_are_complete() {
        let all: Vec<_> = combinations(4, 2).collect();
        assert_eq!(all, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert_eq!(combinations(4, 0).collect::<Vec<_>>(), [[0usize; 0]]);
        assert_eq!(combinations(2, 3).count(), 0);
        assert_eq!(combinations(20, 3).count(), 1140);
    }

    #[test]
    fn ways_are_complete() {
        assert_eq!(ways(vec![2, 3]).collect::<Vec<_>>(), [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(ways(vec![]).count(), 1);
    }
}
