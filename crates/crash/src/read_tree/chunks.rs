//! Sequences of looks, shared between the runs that have them in common.
//!
//! Most runs differ in a few lines and read the same before and after. Where a run's looks are cut into chunks depends
//! on the looks alone, so that two runs have the same chunks again soon after they differed, and each is kept once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// One look and what was there, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReadStep {
    pub look: u32,
    pub content: u32,
}

/// A number of [`Chunks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChunkId(pub u32);

#[derive(Debug, Default)]
pub(super) struct Chunks {
    numbers: FxHashMap<Arc<[ReadStep]>, ChunkId>,
    chunks: Vec<Arc<[ReadStep]>>,
    /// In all chunks together.
    steps: usize,
}

const MOST_STEPS: usize = 512;

/// Does a chunk end with this look? One in 64 does.
fn is_last(look: u32) -> bool {
    look.wrapping_mul(0x9e37_79b1) >> 26 == 0
}

impl Chunks {
    pub fn get(&self, id: ChunkId) -> &[ReadStep] {
        &self.chunks[id.0 as usize]
    }

    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// What they need, in steps.
    pub fn weight(&self) -> usize {
        self.steps + 8 * self.chunks.len()
    }

    /// Cuts steps into chunks.
    pub fn add(&mut self, mut steps: &[ReadStep]) -> Vec<ChunkId> {
        let mut chunks = Vec::with_capacity(steps.len() / 32 + 1);
        while !steps.is_empty() {
            let most = steps.len().min(MOST_STEPS);
            let end = steps[..most].iter().position(|step| is_last(step.look)).map_or(most, |last| last + 1);
            chunks.push(self.intern(&steps[..end]));
            steps = &steps[end..];
        }
        chunks.shrink_to_fit();
        chunks
    }

    fn intern(&mut self, steps: &[ReadStep]) -> ChunkId {
        if let Some(&known) = self.numbers.get(steps) {
            return known;
        }
        let id = ChunkId(u32::try_from(self.chunks.len()).expect("the limits allow fewer than 2³² chunks"));
        let steps: Arc<[ReadStep]> = steps.into();
        self.steps += steps.len();
        self.numbers.insert(Arc::clone(&steps), id);
        self.chunks.push(steps);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_in_one_line_share_nearly_all() {
        let steps: Vec<ReadStep> = (0..10_000).map(|look| ReadStep { look, content: 0 }).collect();
        let mut chunks = Chunks::default();
        let whole = chunks.add(&steps);
        let flat: Vec<ReadStep> = whole.iter().flat_map(|&chunk| chunks.get(chunk).to_vec()).collect();
        assert_eq!(flat, steps);
        let alone = chunks.steps;
        for at in [0, 1, 77, 5_000, 9_999] {
            let mut other = steps.clone();
            other[at].content = 1 + at as u32;
            chunks.add(&other);
            // The rest after a branch, too.
            chunks.add(&steps[at + 1..]);
        }
        assert!(chunks.steps < alone + 5 * 2 * MOST_STEPS, "{} steps", chunks.steps);
    }
}
