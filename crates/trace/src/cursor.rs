//! A place in a trace from which events are read in order.

use std::ops::Range;

use crate::block::decode::{BlockStep, Decoder};
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
    next_block: usize,
    /// First event and place in the file of the block that is loaded.
    block_first: u64,
    block_offset: u64,
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
            next_block,
            block_first: 0,
            block_offset: 0,
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
        match self.advance()? {
            Some(step) => Ok(Some(self.decoder.event(step))),
            None => Ok(None),
        }
    }

    /// As [`Events::next`], with the event's number.
    #[inline]
    pub fn next_with_id(&mut self) -> Result<Option<(EventId, Event<'_>)>, ReadError> {
        match self.advance()? {
            Some(step) => Ok(Some((self.last, self.decoder.event(step)))),
            None => Ok(None),
        }
    }

    /// Calls `each` with every event that is left, its number, and the number of its shape, which events share only if they have the same instruction
    /// and call path. There are few shapes, and they begin at 0: something that is known of a place in the code can be kept by it. The event is built
    /// where it is used: to return one means to copy it twice, which costs more than to read it from its block.
    #[inline(always)]
    pub fn for_each_with_shape<E: From<ReadError>>(
        &mut self,
        mut each: impl FnMut(EventId, u32, &Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(step) = self.advance()? {
            let event = self.decoder.event(step);
            each(self.last, self.decoder.shape(step), &event)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn advance(&mut self) -> Result<Option<BlockStep>, ReadError> {
        loop {
            if self.decoder.is_done() {
                match self.load() {
                    Ok(true) => {}
                    Ok(false) => return Ok(None),
                    Err(error) => return Err(self.end(error)),
                }
            }
            let id = EventId(self.block_first + self.decoder.at() as u64);
            if id >= self.range.end {
                return Ok(None);
            }
            let step = match self.decoder.step() {
                Ok(step) => step,
                Err(what) => return Err(self.end(self.corrupt(what))),
            };
            let wanted = match self.only {
                Only::All => true,
                Only::Thread(thread) => self.decoder.thread() == thread,
                Only::Context(context) => self.decoder.context(step) == context,
            };
            if wanted && id >= self.range.start {
                self.last = id;
                return Ok(Some(step));
            }
        }
    }

    /// After an error there is nothing more to come: what follows could be taken for what belongs there.
    #[cold]
    fn end(&mut self, error: ReadError) -> ReadError {
        self.range.end = EventId(0);
        error
    }

    /// The error that says that the block of the last event makes no sense.
    pub(crate) fn corrupt(&self, what: Malformed) -> ReadError {
        self.reader.file.corrupt(self.block_offset, what)
    }

    /// Number of the event that `next` returned last.
    #[inline]
    pub fn id(&self) -> EventId {
        self.last
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
                (self.block_first, self.block_offset) = (block.first, block.chunk.offset);
                self.reader.file.body(&block.chunk, &mut self.packed, &mut self.raw)?;
                self.decoder
                    .load(directory, &self.raw, &self.reader.shapes)
                    .map_err(|what| self.reader.file.corrupt(block.chunk.offset, what))?;
                return Ok(true);
            }
        }
    }
}
