//! Reads the plugin's records.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use wire::guest::{
    GuestRecordKind, MAX_CODE_RANGES, RING_CODE_AT, RING_HEAD, RING_READ_AT, RING_WORDS, RING_WRITTEN_AT,
};

use crate::memory::Shared;

/// One record of the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: GuestRecordKind,
    pub detail: u8,
    /// Of a store.
    pub bytes: usize,
    frames: usize,
    words: Vec<u64>,
}

impl Record {
    /// From its first word and those that follow it; none if they contradict each other.
    pub fn parse(head: u64, words: &[u64]) -> Option<Record> {
        let byte = |number: u32| (head >> (number * 8)) as u8;
        let (kind, bytes, frames) = (GuestRecordKind::of(head)?, usize::from(byte(2)), usize::from(byte(3)));
        let expected = match kind {
            GuestRecordKind::Store | GuestRecordKind::Flush | GuestRecordKind::Fence => 3 + bytes.div_ceil(8) + frames,
            GuestRecordKind::Mark | GuestRecordKind::ReadLine | GuestRecordKind::WroteLine | GuestRecordKind::Edge => 1,
        };
        let right = words.len() == expected && usize::from(byte(4)) == expected;
        right.then(|| Record { kind, detail: byte(1), bytes, frames, words: words.to_vec() })
    }

    /// The offset in PM, the line, the mark, or the edge.
    pub fn subject(&self) -> u64 {
        self.words[0]
    }

    pub fn instruction(&self) -> u64 {
        self.words[1]
    }

    pub fn stack(&self) -> u64 {
        self.words[2]
    }

    pub fn value(&self) -> Vec<u8> {
        let words = &self.words[3..3 + self.bytes.div_ceil(8)];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(self.bytes);
        bytes
    }

    /// Return addresses, innermost first.
    pub fn frames(&self) -> &[u64] {
        &self.words[self.words.len() - self.frames..]
    }
}

/// The reading end.
#[derive(Debug)]
pub struct Ring {
    shared: Shared,
    read: u64,
}

impl Ring {
    pub fn create() -> io::Result<Ring> {
        Ok(Ring { shared: Shared::create(c"fencepost-ring", RING_HEAD + RING_WORDS * 8)?, read: 0 })
    }

    pub fn path(&self) -> String {
        self.shared.path()
    }

    /// Says which code's edges are wanted; those that are too many are left out.
    pub fn set_code(&mut self, ranges: &[Range<u64>]) {
        let ranges = &ranges[..ranges.len().min(MAX_CODE_RANGES)];
        let words = ranges.iter().flat_map(|range| [range.start, range.end]);
        for (number, word) in (0..).zip([ranges.len() as u64].into_iter().chain(words)) {
            self.shared.word(RING_CODE_AT + number * 8).store(word, Ordering::Release);
        }
    }

    fn at(&self, position: u64) -> u64 {
        self.shared.word(RING_HEAD + position % RING_WORDS * 8).load(Ordering::Relaxed)
    }

    /// Takes what is there; false if it makes no sense.
    pub fn drain(&mut self, into: &mut Vec<Record>) -> bool {
        let written = self.shared.word(RING_WRITTEN_AT).load(Ordering::Acquire);
        while self.read < written {
            let head = self.at(self.read);
            let words: Vec<u64> = (1..=(head >> 32) & 0xff).map(|number| self.at(self.read + number)).collect();
            let Some(record) = Record::parse(head, &words) else { return false };
            into.push(record);
            self.read += 1 + words.len() as u64;
        }
        self.shared.word(RING_READ_AT).store(self.read, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use wire::guest::head;

    use super::*;

    #[test]
    fn a_store_has_bytes_and_a_path() {
        let words = [0x40, 0xffff_ffff_8100_0000, 0xffff_c900_0000_4000, 0x0807_0605_0403_0201, 0x100f, 11, 22];
        let record = Record::parse(head(GuestRecordKind::Store, 1, 10, 2, 7), &words).unwrap();
        assert_eq!(record.value(), [1, 2, 3, 4, 5, 6, 7, 8, 0x0f, 0x10]);
        assert_eq!(record.frames(), [11, 22]);
        assert_eq!((record.subject(), record.detail), (0x40, 1));
        // A length that is not its own.
        assert!(Record::parse(head(GuestRecordKind::Store, 1, 10, 2, 7), &words[..6]).is_none());
        assert!(Record::parse(head(GuestRecordKind::Mark, 0, 0, 0, 2), &[1, 2]).is_none());
        assert!(Record::parse(99, &[]).is_none());
    }
}
