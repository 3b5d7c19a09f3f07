//! The campaign's source of randomness: one seed, one campaign.

use serde::{Deserialize, Serialize};

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn draw(&mut self) -> u64 {
        let (word, next) = wire::virtual_time::random_word(self.0);
        self.0 = next;
        word
    }

    /// Below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(end)) >> 64) as u64
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True once in `of` times.
    pub fn once_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    /// One of these; none if there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.index(from.len()))
    }

    /// From 1 on, small numbers more often; at most `most`.
    pub fn small(&mut self, most: usize) -> usize {
        let most = most.max(1);
        let bits = self.below(1 + u64::from(usize::BITS - most.leading_zeros()));
        1 + self.index(most.min(1 << bits))
    }
}
