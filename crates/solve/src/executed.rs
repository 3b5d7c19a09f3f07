//! Which code ran.

use std::collections::BTreeMap;

/// Blocks that ran, as ranges of addresses.
#[derive(Debug, Default)]
pub struct Executed {
    blocks: BTreeMap<u64, u64>,
}

/// Blocks that begin between the one that is looked for and an address in it: where others jump into it.
const MOST_OVERLAPPING: usize = 32;

impl Executed {
    /// The block ran; true if none from there on did before.
    pub fn insert(&mut self, pc: u64, len: u64) -> bool {
        let known = self.blocks.contains_key(&pc);
        let end = self.blocks.entry(pc).or_default();
        *end = (*end).max(pc + len);
        !known
    }

    /// The instruction at `pc` ran.
    pub fn contains(&self, pc: u64) -> bool {
        self.blocks.range(..=pc).rev().take(MOST_OVERLAPPING).any(|(_, &end)| pc < end)
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_inside_a_block_ran_with_it() {
        let mut executed = Executed::default();
        assert!(executed.insert(100, 20) && executed.insert(110, 4) && !executed.insert(100, 10));
        assert!(executed.contains(119) && executed.contains(112));
        assert!(!executed.contains(120) && !executed.contains(99));
        assert_eq!(executed.len(), 2);
    }
}
