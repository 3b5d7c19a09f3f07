//! What can be mutated: one file per kind of input.
//!
//! Another kind (system calls, inputs that a solver makes) implements [`Inputs`]; the campaign knows nothing else of inputs than that.

pub mod bytes;
pub mod operations;

use std::fmt::Debug;
use std::ops::Range;

use crate::random::Random;

/// A kind of input.
pub trait Inputs: Debug + Send + Sync {
    /// One to begin with.
    fn first(&self, random: &mut Random) -> Vec<u8>;

    /// Another input, made of one that is worth it and perhaps of a second one.
    fn mutate(&self, input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8>;

    /// As [`mutate`](Self::mutate), but the first `kept` bytes, which are whole parts, stay as they are.
    fn mutate_after(&self, input: &[u8], kept: usize, other: &[u8], random: &mut Random) -> Vec<u8> {
        let (head, tail) = input.split_at(kept);
        [head, &self.mutate(tail, other, random)].concat()
    }

    /// Parts that can be left out, to make an input shorter.
    fn parts(&self, input: &[u8]) -> Vec<Range<usize>>;

    /// Queries that make visible what these inputs, run one after the other, have left; none where nobody answers.
    fn readback(&self, inputs: &[&[u8]]) -> Vec<u8> {
        let _ = inputs;
        Vec::new()
    }
}
