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

    /// Parts that can be left out, to make an input shorter.
    fn parts(&self, input: &[u8]) -> Vec<Range<usize>>;

    /// Queries that make visible what these inputs, run one after the other, have left; none where nobody answers.
    fn readback(&self, inputs: &[&[u8]]) -> Vec<u8> {
        let _ = inputs;
        Vec::new()
    }
}
