//! Crash states as plain data, and all states of a crash point in order of distance.

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::line::LineId;
use crate::point::LineView;

/// What the lines that a crash state does not name have in PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// Only what is guaranteed.
    Guaranteed,
    /// Everything that was stored.
    Everything,
}

/// One possible content of PM at a crash point: the base, and the lines that differ from it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CrashState {
    pub base: Base,
    /// Ascending by line.
    pub lines: Vec<(LineId, Content)>,
}

impl CrashState {
    /// What this state has of a line of its crash point.
    pub fn content(&self, line: &LineView<'_>) -> Content {
        match self.lines.binary_search_by_key(&line.id(), |&(id, _)| id) {
            Ok(at) => self.lines[at].1,
            Err(_) if self.base == Base::Guaranteed => Content::default(),
            Err(_) => Content::whole(u32::try_from(line.pending()).unwrap_or(u32::MAX)),
        }
    }
}

/// All crash states of a point, nearest to the base first. The cost of each is its distance, not the number of lines.
#[derive(Clone, Debug)]
pub struct States {
    base: Base,
    lines: Vec<(LineId, u64)>,
    /// `room[i]` is how many steps the lines from `i` on allow together.
    room: Vec<u64>,
    /// One line index per step away from the base, ascending: a multiset in which line `i` occurs at most as often
    /// as it has pending stores. The iterator goes through them by size, then lexicographically.
    steps: Vec<usize>,
    done: bool,
}

impl States {
    pub(crate) fn new(base: Base, lines: Vec<(LineId, u64)>) -> Self {
        let mut room = vec![0; lines.len() + 1];
        for (i, (_, pending)) in lines.iter().enumerate().rev() {
            room[i] = room[i + 1] + pending;
        }
        States { base, lines, room, steps: Vec::new(), done: false }
    }

    /// Every way to go at most so many steps on each line, the fewest steps first: `kept` is the number of steps.
    pub fn counting(lines: Vec<(LineId, u64)>) -> Self {
        States::new(Base::Guaranteed, lines)
    }

    /// How many stores the next state has more, or fewer, than the base; none when there is no next one.
    pub fn distance(&self) -> Option<usize> {
        (!self.done).then_some(self.steps.len())
    }

    fn current(&self) -> CrashState {
        let mut lines: Vec<(LineId, Content)> = Vec::new();
        for run in self.steps.chunk_by(|a, b| a == b) {
            let (id, pending) = self.lines[run[0]];
            let steps = run.len() as u64;
            let kept = if self.base == Base::Guaranteed { steps } else { pending - steps };
            lines.push((id, Content::whole(u32::try_from(kept).unwrap_or(u32::MAX))));
        }
        CrashState { base: self.base, lines }
    }

    /// Replaces the steps from `from` on by the least that use lines from `line` on only.
    fn fill(&mut self, from: usize, mut line: usize) {
        let size = self.steps.len();
        let mut at = from;
        while at < size {
            let run = (self.lines[line].1).min((size - at) as u64) as usize;
            self.steps[at..at + run].fill(line);
            at += run;
            line += 1;
        }
    }

    fn advance(&mut self) {
        let size = self.steps.len();
        for at in (0..size).rev() {
            let line = self.steps[at] + 1;
            if self.room[line] >= (size - at) as u64 {
                self.fill(at, line);
                return;
            }
        }
        if self.room[0] > size as u64 {
            self.steps.push(0);
            self.fill(0, 0);
        } else {
            self.done = true;
        }
    }
}

impl Iterator for States {
    type Item = CrashState;

    fn next(&mut self) -> Option<CrashState> {
        if self.done {
            return None;
        }
        let state = self.current();
        self.advance();
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use trace::event::{LineNo, PoolId};

    use super::*;

    fn lines(pending: &[u64]) -> Vec<(LineId, u64)> {
        let id = |line| LineId { pool: PoolId(0), line: LineNo(line as u64) };
        pending.iter().enumerate().map(|(line, &n)| (id(line), n)).collect()
    }

    #[test]
    fn every_state_comes_once_and_the_nearest_first() {
        for pending in [&[][..], &[1], &[3], &[1, 1, 1], &[2, 0, 3], &[4, 1, 2, 1]] {
            for base in [Base::Guaranteed, Base::Everything] {
                let mut states = States::new(base, lines(pending));
                let (mut seen, mut last) = (HashSet::new(), 0);
                while let Some(distance) = states.distance() {
                    assert!(distance >= last);
                    last = distance;
                    let state = states.next().expect("a distance promises a state");
                    let total: u64 = state.lines.iter().map(|(_, content)| u64::from(content.kept)).sum();
                    if base == Base::Guaranteed {
                        assert_eq!(total, distance as u64);
                    }
                    assert!(state.lines.iter().all(|(id, c)| u64::from(c.kept) <= pending[id.line.0 as usize]));
                    assert!(seen.insert(state), "twice");
                }
                assert_eq!(states.next(), None);
                assert_eq!(seen.len() as u64, pending.iter().map(|n| n + 1).product::<u64>());
            }
        }
    }
}
