//! A block of which every event can be asked for, in any order.

use std::ops::Range;

use super::decode::{BlockStep, Decoder};
use crate::error::Malformed;
use crate::event::{Event, ThreadId};

/// Where the parts of an event are.
#[derive(Clone, Copy, Debug)]
struct DecodedRow {
    step: BlockStep,
    thread: ThreadId,
    /// The end of its part of the heap; that of the event before is its begin.
    heap_end: u32,
}

/// A decoder that has seen its whole block: rows refer to rows before them, so no event is known before those are.
#[derive(Debug)]
pub(crate) struct DecodedBlock {
    decoder: Decoder,
    rows: Vec<DecodedRow>,
}

impl DecodedBlock {
    /// All of a block that was loaded and not read yet.
    pub fn of(mut decoder: Decoder) -> Result<DecodedBlock, Malformed> {
        let mut rows = Vec::with_capacity(decoder.events());
        while !decoder.is_done() {
            let step = decoder.step()?;
            // A chunk has at most `MAX_RAW` bytes.
            let heap_end = decoder.heap_part().end as u32;
            rows.push(DecodedRow { step, thread: decoder.thread(), heap_end });
        }
        Ok(DecodedBlock { decoder, rows })
    }

    pub fn event(&self, at: usize) -> Event<'_> {
        let row = self.rows[at];
        self.decoder.event_of(row.step, row.thread, self.heap_part(at))
    }

    fn heap_part(&self, at: usize) -> Range<usize> {
        let start = at.checked_sub(1).map_or(0, |before| self.rows[before].heap_end);
        start as usize..self.rows[at].heap_end as usize
    }

    /// About how much memory it takes.
    pub fn bytes_held(&self) -> usize {
        size_of_val(self.rows.as_slice()) + self.decoder.bytes_held()
    }
}
