//! A place in a trace from which events are read in order.

use std::ops::Range;

use crate::block::decode::Decoder;
use crate::error::{Malformed, ReadError};
use crate::event::{ContextId, Event, EventId, ThreadId};
use crate::reader::{Ending, TraceReader};

/// Which events a cursor yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Only {
    All,
    Thread(ThreadId),
    Context(ContextId),
}

/// Events in order. Not an `Iterator`, because an event borrows from the block that is being read.
#[derive(Debug)]
pub struct Events<'r> {
    reader: &'r TraceReader,
    only: Only,
    decoder: Decoder,
    /// Number of the block that is loaded, and of the one after it.
    block: Option<usize>,
    next_block: usize,
    range: Range<EventId>,
    last: EventId,
    packed: Vec<u8>,
    raw: Vec<u8>,
}

impl<'r> Events<'r> {
    pub(crate) fn new(reader: &'r TraceReader, range: Range<EventId>, only: Only) -> Events<'r> {
        let next_block = reader.blocks.partition_point(|block| block.first + u64::from(block.events) <= range.start.0);
        Events {
            reader,
            only,
            decoder: Decoder::default(),
            block: None,
            next_block,
            range,
            last: EventId(0),
            packed: Vec::new(),
            raw: Vec::new(),
        }
    }

    /// The next event; none at the end of what can be read. A file that is damaged there gives an error instead.
    #[expect(clippy::should_implement_trait, reason = "a lending iterator cannot implement `Iterator`")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        Ok(self.next_with_id()?.map(|(_, event)| event))
    }

    /// As [`Events::next`], with the event's number.
    #[inline]
    pub fn next_with_id(&mut self) -> Result<Option<(EventId, Event<'_>)>, ReadError> {
        let step = loop {
            if self.decoder.is_done() && !self.load()? {
                return Ok(None);
            }
            let id = EventId(self.block_first() + self.decoder.at() as u64);
            if id >= self.range.end {
                return Ok(None);
            }
            let step = self.decoder.step();
            let wanted = match self.only {
                Only::All => true,
                Only::Thread(thread) => step.thread == thread,
                Only::Context(context) => self.decoder.context(step) == context,
            };
            if wanted && id >= self.range.start {
                self.last = id;
                break step;
            }
            // Bytes on the heap are consumed in order, so an event that is skipped must be built as well.
            if let Err(what) = self.decoder.build(step) {
                return Err(self.corrupt(what));
            }
        };
        let offset = self.block_offset();
        match self.decoder.build(step) {
            Ok(event) => Ok(Some((self.last, event))),
            Err(what) => Err(self.reader.file.corrupt(offset, what)),
        }
    }

    /// The error that says that the block of the last event makes no sense.
    pub(crate) fn corrupt(&self, what: Malformed) -> ReadError {
        self.reader.file.corrupt(self.block_offset(), what)
    }

    fn block_offset(&self) -> u64 {
        self.block.map_or(0, |block| self.reader.blocks[block].chunk.offset)
    }

    /// Number of the event that `next` returned last.
    #[inline]
    pub fn id(&self) -> EventId {
        self.last
    }

    fn block_first(&self) -> u64 {
        self.block.map_or(0, |block| self.reader.blocks[block].first)
    }

    /// Unpacks the next block that is wanted; false at the end.
    fn load(&mut self) -> Result<bool, ReadError> {
        loop {
            let Some(block) = self.reader.blocks.get(self.next_block) else {
                return match self.reader.ending() {
                    Ending::Damaged { at, what } if self.range.end.0 >= self.reader.event_count() => {
                        Err(self.reader.file.corrupt(at, Malformed(what)))
                    }
                    _ => Ok(false),
                };
            };
            if block.first >= self.range.end.0 {
                return Ok(false);
            }
            self.next_block += 1;
            let directory = self.reader.directory(block)?;
            let wanted = match self.only {
                Only::All => true,
                Only::Thread(thread) => directory.threads.contains(&thread),
                Only::Context(context) => {
                    directory.shapes.iter().any(|(shape, _)| self.reader.shapes[*shape as usize].context == context)
                }
            };
            if wanted {
                self.reader.file.body(&block.chunk, &mut self.packed, &mut self.raw)?;
                self.decoder
                    .load(directory, &self.raw, &self.reader.shapes)
                    .map_err(|what| self.reader.file.corrupt(block.chunk.offset, what))?;
                self.block = Some(self.next_block - 1);
                return Ok(true);
            }
        }
    }
}
