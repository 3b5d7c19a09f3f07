//! Small parts of a trace that lie near each other, read again and again.
//!
//! Who looks for a cause asks for single stores and for a few hundred events here and there around a crash. A block has up to 65,535 events, and to
//! read one of them all before it have to be decoded. So a few blocks are kept as they were decoded ([`NearBlocks`]), and a cursor ([`NearEvents`])
//! begins in them. One that goes on for longer reads the trace as everybody does: it would only push out what others come back to.

use std::sync::{Arc, Mutex, PoisonError};

use crate::block::decode::Decoder;
use crate::block::decoded::DecodedBlock;
use crate::cursor::Events;
use crate::error::ReadError;
use crate::event::{Event, EventId};
use crate::reader::TraceReader;

/// How many blocks are kept, and how many bytes they may have together. Several workers look at places of their own, each at two blocks where a
/// block ends.
const MOST_BLOCKS: usize = 8;
const MOST_BYTES: usize = 24 << 20;

/// In so many blocks a cursor stays before it reads on as others do.
const BLOCKS_OF_A_CURSOR: usize = 2;

/// The blocks that were asked for last, by their number, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct NearBlocks(Mutex<Vec<(usize, Arc<DecodedBlock>)>>);

impl NearBlocks {
    fn get(&self, reader: &TraceReader, number: usize) -> Result<Arc<DecodedBlock>, ReadError> {
        if let Some(known) = self.known(number) {
            return Ok(known);
        }
        // Not under the lock: other workers need other blocks meanwhile.
        let block = Arc::new(reader.decoded(number)?);
        self.keep(number, Arc::clone(&block));
        Ok(block)
    }

    fn known(&self, number: usize) -> Option<Arc<DecodedBlock>> {
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = blocks.iter().position(|(known, _)| *known == number)?;
        let known = blocks.remove(at);
        let block = Arc::clone(&known.1);
        blocks.push(known);
        Some(block)
    }

    fn keep(&self, number: usize, block: Arc<DecodedBlock>) {
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another worker may have been faster.
        blocks.retain(|(known, _)| *known != number);
        blocks.push((number, block));
        while blocks.len() > MOST_BLOCKS
            || blocks.iter().map(|(_, block)| block.bytes_held()).sum::<usize>() > MOST_BYTES
        {
            blocks.remove(0);
        }
    }

    #[cfg(test)]
    fn held(&self) -> (usize, usize) {
        let blocks = self.0.lock().unwrap();
        (blocks.len(), blocks.iter().map(|(_, block)| block.bytes_held()).sum())
    }
}

impl TraceReader {
    /// Events of a part that others near it were or will be asked for; the same as [`events_in`](TraceReader::events_in).
    pub fn events_near(&self, range: std::ops::Range<EventId>) -> NearEvents<'_> {
        NearEvents { reader: self, next: range.start, end: range.end, blocks: 0, from: From::Nothing }
    }

    fn decoded(&self, number: usize) -> Result<DecodedBlock, ReadError> {
        let block = &self.blocks[number];
        let (mut packed, mut raw, mut decoder) = (Vec::new(), Vec::new(), Decoder::default());
        self.file.body(&block.chunk, &mut packed, &mut raw)?;
        decoder
            .load(self.directory(block)?, &raw, &self.shapes)
            .and_then(|()| DecodedBlock::of(decoder))
            .map_err(|what| self.file.corrupt(block.chunk.offset, what))
    }
}

/// See [`TraceReader::events_near`].
#[derive(Debug)]
pub struct NearEvents<'r> {
    reader: &'r TraceReader,
    next: EventId,
    end: EventId,
    /// How many it has been in.
    blocks: usize,
    from: From<'r>,
}

/// Where the next event comes from.
#[derive(Debug)]
enum From<'r> {
    Nothing,
    Block { first: u64, end: u64, block: Arc<DecodedBlock> },
    Trace(Box<Events<'r>>),
}

impl NearEvents<'_> {
    /// The next event with its number; none at the end of what can be read. A file that is damaged there gives an error instead.
    pub fn next_with_id(&mut self) -> Result<Option<(EventId, Event<'_>)>, ReadError> {
        self.arrive();
        match &mut self.from {
            From::Trace(events) => events.next_with_id(),
            From::Block { first, block, .. } => {
                let id = self.next;
                self.next.0 += 1;
                Ok(Some((id, block.event((id.0 - *first) as usize))))
            }
            From::Nothing => Ok(None),
        }
    }

    /// Goes to where the next event is.
    fn arrive(&mut self) {
        match &self.from {
            From::Trace(_) => return,
            _ if self.next >= self.end => {
                self.from = From::Nothing;
                return;
            }
            From::Block { end, .. } if self.next.0 < *end => return,
            From::Block { .. } | From::Nothing => {}
        }
        self.blocks += 1;
        self.from = self.block().unwrap_or_else(|| {
            // From here on, past the end of the trace, or in a damaged block: that says itself what is wrong.
            From::Trace(Box::new(self.reader.events_in(self.next..self.end)))
        });
    }

    fn block(&self) -> Option<From<'static>> {
        let blocks = &self.reader.blocks;
        let number = blocks.partition_point(|block| block.first + u64::from(block.events) <= self.next.0);
        let at = blocks.get(number).filter(|_| self.blocks <= BLOCKS_OF_A_CURSOR)?;
        let block = self.reader.near.get(self.reader, number).ok()?;
        Some(From::Block { first: at.first, end: at.first + u64::from(at.events), block })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ContextId, EventKind, ExitStatus, Place, PoolOffset, StoreKind, ThreadId};
    use crate::tables::{CodeModule, Meta, ModuleKind, Outcome, PoolInfo};
    use crate::writer::TraceWriter;
    use crate::{CodeAddr, FenceKind};

    /// Events of all kinds of length, of three threads, in some twelve blocks.
    fn recorded() -> (tempfile::TempDir, TraceReader) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.fptrace");
        let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
        let pool = writer.pool(PoolInfo { path: "pool".into(), len: 1 << 20 }, &mut &[0u8; 0][..]).unwrap();
        let module = writer.module(CodeModule { path: "program".into(), build_id: None, kind: ModuleKind::Elf });
        for number in 0..780_000_u64 {
            let bytes = vec![number as u8; (number % 41 * (number % 3)) as usize + 1];
            let place = Place { pool, offset: PoolOffset(number * 8 % 65_000) };
            let kind = match number % 7 {
                6 => EventKind::Fence { kind: FenceKind::Sfence },
                3 => EventKind::FileWrite { place, bytes: &bytes },
                _ => EventKind::Store { place, kind: StoreKind::Plain, bytes: &bytes[..bytes.len().min(8)] },
            };
            let pc = CodeAddr { module, addr: number % 7 };
            writer
                .push(&Event { thread: ThreadId((number / 100 % 3) as u32), context: ContextId(0), pc, kind })
                .unwrap();
        }
        writer.finish(&mut [], Outcome::Ended(ExitStatus::Code(0))).unwrap();
        let reader = TraceReader::open(&path).unwrap();
        (folder, reader)
    }

    #[test]
    fn near_events_are_the_events_of_the_trace_and_few_blocks_are_kept() {
        let (_folder, reader) = recorded();
        assert!(reader.blocks.len() > MOST_BLOCKS + 1, "{} blocks", reader.blocks.len());
        let mut at = 1u64;
        for round in 0..60 {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let from = (at >> 20) % reader.event_count();
            // Also to the end, through several blocks, and past it.
            let len = [1, 300, 70_000, 200_000, u64::MAX - from][round % 5];
            let range = EventId(from)..EventId(from + len);
            let (mut near, mut all) = (reader.events_near(range.clone()), reader.events_in(range));
            let mut count = 0;
            loop {
                let (own, expected) = (near.next_with_id().unwrap(), all.next_with_id().unwrap());
                assert_eq!(own, expected);
                let Some((id, _)) = own else { break };
                assert_eq!(id.0, from + count);
                count += 1;
            }
            assert!(near.next_with_id().unwrap().is_none());
            assert_eq!(count, len.min(reader.event_count() - from));
            let (blocks, bytes) = reader.near.held();
            assert!((1..=MOST_BLOCKS).contains(&blocks) && bytes <= MOST_BYTES, "{blocks} blocks, {bytes} bytes");
        }
        let from = reader.blocks[2].first;
        reader.events_near(EventId(from)..EventId(from + 1)).next_with_id().unwrap();
        let known = reader.near.known(2).expect("it was just asked for");
        assert!(Arc::ptr_eq(&known, &reader.near.get(&reader, 2).unwrap()), "it is not decoded again");
    }
}
