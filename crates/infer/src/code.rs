//! The code of a process, as far as it is known: what it executed, and what lies around that in its files.

use std::collections::BTreeMap;
use std::fmt;

/// Reads code that was not executed. Without one, a way that no run took is taken to lead out of its function.
pub trait CodeSource: Send {
    /// Fills `bytes` with what is at `pc`, as far as that is known, and says how many bytes that was.
    fn read(&mut self, pc: u64, bytes: &mut [u8]) -> usize;
}

/// Bytes of an instruction, at most (SDM vol. 2 §2.3.11).
pub const LONGEST: usize = 15;

/// No block is longer.
const LONGEST_BLOCK: u64 = 1 << 16;

/// Earlier blocks to look at for one that reaches a place: blocks overlap where one is entered in its middle.
const OVERLAPPING: usize = 8;

#[derive(Default)]
pub struct Code {
    blocks: BTreeMap<u64, Box<[u8]>>,
    source: Option<Box<dyn CodeSource>>,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("blocks", &self.blocks.len()).finish_non_exhaustive()
    }
}

impl Code {
    pub fn define(&mut self, pc: u64, bytes: &[u8]) {
        let known = self.blocks.entry(pc).or_default();
        if known.len() < bytes.len() || !known.starts_with(bytes) {
            *known = bytes.into();
        }
    }

    pub fn set_source(&mut self, source: Box<dyn CodeSource>) {
        self.source = Some(source);
    }

    /// The blocks without what else is known: for a process that begins as a copy.
    pub fn copy(&self) -> Code {
        Code { blocks: self.blocks.clone(), source: None }
    }

    /// The bytes from `pc` on, as many as an instruction can have if so many are known.
    pub fn at(&mut self, pc: u64, bytes: &mut [u8; LONGEST]) -> usize {
        let before = self.blocks.range(pc.saturating_sub(LONGEST_BLOCK)..=pc).rev().take(OVERLAPPING);
        let inside = before.filter_map(|(&start, block)| block.get((pc - start) as usize..));
        let longest = inside.max_by_key(|rest| rest.len()).unwrap_or_default();
        let count = longest.len().min(LONGEST);
        bytes[..count].copy_from_slice(&longest[..count]);
        if count > 0 {
            // A block is made of whole instructions.
            return count;
        }
        self.source.as_mut().map_or(0, |source| source.read(pc, bytes).min(LONGEST))
    }
}
