//! The code of a process, as far as it is known: what it executed, and the files that it runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Bytes of an instruction, at most (SDM vol. 2 §2.3.11).
pub const LONGEST: usize = 15;

/// No block is longer.
const LONGEST_BLOCK: u64 = 1 << 16;

/// Earlier blocks to look at for one that reaches a place: blocks overlap where one is entered in its middle.
const OVERLAPPING: usize = 8;

/// Bytes of a file that are read at once.
const PIECE: u64 = 4096;

/// Some addresses that show a file.
#[derive(Clone, Debug)]
struct Mapping {
    start: u64,
    end: u64,
    path: Arc<str>,
    offset: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Code {
    blocks: BTreeMap<u64, Arc<[u8]>>,
    mappings: Vec<Mapping>,
    /// By file and place in it.
    pieces: FxHashMap<(Arc<str>, u64), Arc<[u8]>>,
}

impl Code {
    /// These bytes were executed.
    pub fn define(&mut self, pc: u64, bytes: &[u8]) {
        let known = self.blocks.get(&pc);
        if known.is_none_or(|known| known.len() < bytes.len() || !known.starts_with(bytes)) {
            self.blocks.insert(pc, bytes.into());
        }
    }

    /// The file at `path` is seen at `address`, from `offset` on.
    pub fn map(&mut self, address: u64, len: u64, path: &str, offset: u64) {
        let mapping = Mapping { start: address, end: address.saturating_add(len), path: path.into(), offset };
        self.mappings.push(mapping);
    }

    /// The bytes from `pc` on, as many as an instruction can have if so many are known.
    pub fn at(&mut self, pc: u64, bytes: &mut [u8; LONGEST]) -> usize {
        let before = self.blocks.range(pc.saturating_sub(LONGEST_BLOCK)..=pc).rev().take(OVERLAPPING);
        let inside = before.filter_map(|(&start, block)| block.get((pc - start) as usize..));
        let longest = inside.max_by_key(|rest| rest.len()).unwrap_or_default();
        let count = longest.len().min(LONGEST);
        bytes[..count].copy_from_slice(&longest[..count]);
        // A block is made of whole instructions.
        if count > 0 { count } else { self.in_file(pc, bytes) }
    }

    fn in_file(&mut self, pc: u64, bytes: &mut [u8; LONGEST]) -> usize {
        // Later mappings cover earlier ones.
        let Some(mapping) = self.mappings.iter().rev().find(|mapping| (mapping.start..mapping.end).contains(&pc))
        else {
            return 0;
        };
        let path = Arc::clone(&mapping.path);
        let (mut at, end) = (mapping.offset + (pc - mapping.start), mapping.offset + (mapping.end - mapping.start));
        let mut count = 0;
        while count < LONGEST && at < end {
            let piece = self.piece(&path, at / PIECE);
            let Some(rest) = piece.get((at % PIECE) as usize..).filter(|rest| !rest.is_empty()) else { break };
            let taken = rest.len().min(LONGEST - count).min((end - at) as usize);
            bytes[count..count + taken].copy_from_slice(&rest[..taken]);
            (count, at) = (count + taken, at + taken as u64);
        }
        count
    }

    /// Empty if the file cannot be read.
    fn piece(&mut self, path: &Arc<str>, number: u64) -> Arc<[u8]> {
        let read = || {
            let mut bytes = vec![0; PIECE as usize];
            let count = File::open(&**path).and_then(|file| file.read_at(&mut bytes, number * PIECE)).unwrap_or(0);
            Arc::from(&bytes[..count])
        };
        Arc::clone(self.pieces.entry((Arc::clone(path), number)).or_insert_with(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_executed_comes_before_what_files_say() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("code");
        let content: Vec<u8> = (0..10_000u32).map(|i| i as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let mut code = Code::default();
        let mut bytes = [0; LONGEST];
        assert_eq!(code.at(0x5000, &mut bytes), 0);
        code.map(0x5000, 0x2000, path.to_str().unwrap(), 0x100);
        for pc in [0x5000, 0x5ef8, 0x6ef0] {
            assert_eq!(code.at(pc, &mut bytes), LONGEST);
            let at = (pc - 0x5000 + 0x100) as usize;
            assert_eq!(bytes, content[at..at + LONGEST], "{pc:x}");
        }
        assert_eq!(code.at(0x6ffa, &mut bytes), 6, "no further than the mapping");
        code.define(0x5000, &[0x90, 0xc3]);
        assert_eq!((code.at(0x5001, &mut bytes), bytes[0]), (1, 0xc3));
        code.map(0x5000, 0x1000, "/does/not/exist", 0);
        assert_eq!(code.at(0x5800, &mut bytes), 0);
    }
}
