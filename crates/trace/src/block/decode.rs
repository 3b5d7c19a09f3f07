//! From the raw bytes of a block back to its events, in order.

use std::ops::Range;

use crate::bytes::Input;
use crate::error::Malformed;
use crate::event::{ContextId, Event, ThreadId};
use crate::format::MAX_RAW;
use crate::shape::{self, Shape};

use super::column::{self, Open, PAST_OFFSETS, Reference};
use super::directory::Directory;
use super::sequence::{EXPLICIT, FRESH, NONE, Past, Predictor};

/// How many events before its turn a row is asked for.
const AHEAD: usize = 8;

/// How far the rows of a shape of the block have been read. Small, because every event needs one of them.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    next: u32,
    /// The first of its columns in `opens`, and how many there are.
    opens: u32,
    open_count: u8,
    width: u8,
    has_place: bool,
    is_checked: bool,
}

/// The shape and the row of an event of the block. One word: it is passed on for every event, and a structure would go through memory, in pieces that
/// the processor cannot forward to the load of the whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockStep(u64);

impl BlockStep {
    #[inline(always)]
    fn new(local: u16, from: u32) -> BlockStep {
        BlockStep(u64::from(local) << 32 | u64::from(from))
    }

    /// The shape's place among those of the block.
    #[inline(always)]
    fn local(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// Where its row begins.
    #[inline(always)]
    fn from(self) -> usize {
        self.0 as u32 as usize
    }
}

/// The last offsets of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct PastOffsets {
    ring: [u64; PAST_OFFSETS],
    len: usize,
}

impl PastOffsets {
    #[inline]
    fn back(&self, back: u8) -> u64 {
        self.ring[self.len.wrapping_sub(1 + usize::from(back)) % PAST_OFFSETS]
    }

    #[inline]
    fn push(&mut self, offset: u64) {
        self.ring[self.len % PAST_OFFSETS] = offset;
        self.len = self.len.wrapping_add(1);
    }
}

/// A block that is being read. Keeps its buffers from block to block.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    directory: Directory,
    /// By shape of the block.
    shapes: Vec<Shape>,
    cursors: Vec<Cursor>,
    opens: Vec<Open>,
    words: Vec<u64>,
    heap: Vec<u8>,
    /// The current event's part of the heap.
    heap_part: Range<usize>,
    sequence: Vec<u16>,
    runs: Vec<(u16, u32)>,
    predictor: Predictor,
    pasts: Vec<Past>,
    past_offsets: Vec<PastOffsets>,
    /// Next event, and where it is in `runs`.
    at: usize,
    run: usize,
    run_left: u32,
    /// Whose run it is.
    thread: ThreadId,
}

impl Decoder {
    pub fn load(&mut self, directory: Directory, body: &[u8], shapes: &[Shape]) -> Result<(), Malformed> {
        self.directory = directory;
        self.sequence.clear();
        self.at = 0;
        let events = self.directory.events() as usize;
        let mut body = Input(body);
        let lengths = [body.count()?, body.count()?, body.count()?, body.count()?];
        let symbols = body.take(events)?;
        let mut explicit = Input(body.take(lengths[0])?);
        let mut runs = Input(body.take(lengths[1])?);
        let mut heads = Input(body.take(lengths[2])?);
        let mut planes = Input(body.take(lengths[3])?);
        self.heap.clear();
        self.heap.extend_from_slice(body.0);
        self.heap_part = 0..0;
        self.read_runs(&mut runs, events)?;
        self.read_sequence(symbols, &mut explicit)?;
        self.read_columns(shapes, &mut heads, &mut planes)
    }

    fn read_runs(&mut self, runs: &mut Input<'_>, events: usize) -> Result<(), Malformed> {
        const WRONG: Malformed = Malformed("the threads of a block make no sense");
        self.runs.clear();
        let mut total = 0u64;
        while !runs.is_empty() {
            let (thread, len) = (runs.varint()?, runs.varint32()?);
            if thread >= self.directory.threads.len() as u64 || len == 0 {
                return Err(WRONG);
            }
            total += u64::from(len);
            self.runs.push((u16::try_from(thread).map_err(|_| WRONG)?, len));
        }
        if total != events as u64 {
            return Err(WRONG);
        }
        let threads = self.directory.threads.len();
        self.pasts.clear();
        self.pasts.resize(threads, Past::default());
        self.past_offsets.clear();
        self.past_offsets.resize(threads, PastOffsets::default());
        let (thread, len) = self.runs.first().copied().unwrap_or_default();
        (self.run, self.run_left) = (0, len);
        self.thread = self.directory.threads.get(usize::from(thread)).copied().unwrap_or_default();
        Ok(())
    }

    fn read_sequence(&mut self, symbols: &[u8], explicit: &mut Input<'_>) -> Result<(), Malformed> {
        const WRONG: Malformed = Malformed("the order of events in a block makes no sense");
        self.predictor.clear();
        let mut counts = vec![0u32; self.directory.shapes.len()];
        let mut fresh = 0u16;
        let mut symbols = symbols.iter();
        for &(thread, len) in &self.runs {
            let mut past = self.pasts[usize::from(thread)];
            for &symbol in symbols.by_ref().take(len as usize) {
                let next = match symbol {
                    FRESH => {
                        self.predictor.grow();
                        fresh = fresh.wrapping_add(1);
                        fresh.wrapping_sub(1)
                    }
                    EXPLICIT => u16::from_le_bytes([explicit.byte()?, explicit.byte()?]),
                    0..FRESH => self.predictor.predicted(past, symbol),
                    _ => return Err(WRONG),
                };
                if next >= fresh || next == NONE {
                    return Err(WRONG);
                }
                *counts.get_mut(usize::from(next)).ok_or(WRONG)? += 1;
                self.predictor.took(&mut past, symbol, next);
                self.sequence.push(next);
            }
            self.pasts[usize::from(thread)] = past;
        }
        let expected = self.directory.shapes.iter().map(|(_, rows)| rows);
        if counts.iter().eq(expected) { Ok(()) } else { Err(WRONG) }
    }

    fn read_columns(
        &mut self,
        shapes: &[Shape],
        heads: &mut Input<'_>,
        planes: &mut Input<'_>,
    ) -> Result<(), Malformed> {
        self.shapes.clear();
        self.cursors.clear();
        self.opens.clear();
        let mut total = 0usize;
        for &(shape, rows) in &self.directory.shapes {
            let shape = shapes[shape as usize];
            let width = shape.width();
            self.shapes.push(shape);
            self.cursors.push(Cursor {
                next: total as u32,
                opens: 0,
                open_count: 0,
                width: width as u8,
                has_place: shape.code.has_place(),
                is_checked: shape.is_checked(),
            });
            total += rows as usize * width;
        }
        if total > MAX_RAW / 8 {
            return Err(Malformed("a block is too large"));
        }
        // What is left of the last block is overwritten, column by column.
        self.words.resize(total, 0);
        let mut words = &mut self.words[..];
        for (cursor, &(_, rows)) in self.cursors.iter_mut().zip(&self.directory.shapes) {
            let width = usize::from(cursor.width);
            let (own, rest) = words.split_at_mut(rows as usize * width);
            words = rest;
            let opens = self.opens.len();
            for word in 0..width {
                let Some(open) = column::decode(own, width, word, heads, planes)? else { continue };
                let is_open = |word: usize| self.opens[opens..].iter().any(|open| usize::from(open.word) == word);
                match open.reference {
                    Reference::Left(places) if !is_open(word - usize::from(places)) => {
                        column::add_left(own, width, word, places);
                    }
                    _ => self.opens.push(open),
                }
            }
            (cursor.opens, cursor.open_count) = (opens as u32, (self.opens.len() - opens) as u8);
        }
        Ok(())
    }

    /// Place of the next event in the block.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub fn is_done(&self) -> bool {
        self.at >= self.sequence.len()
    }

    /// Asks for the row of an event to come: rows are by shape, so those of a run of events lie all over the block,
    /// which is larger than the caches near the processor.
    #[inline(always)]
    fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        if let Some(&number) = self.sequence.get(self.at + AHEAD) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let row = self.words.as_ptr().wrapping_add(self.cursors[usize::from(number)].next as usize);
            // SAFETY: SSE is part of x86-64, and a prefetch of whatever address reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(row.cast()) };
        }
    }

    /// Goes to the next event: resolves its row. Only if not [`Decoder::is_done`].
    #[inline(always)]
    pub fn step(&mut self) -> Result<BlockStep, Malformed> {
        self.prefetch();
        let number = self.sequence[self.at];
        self.at += 1;
        if self.run_left == 0 {
            self.run += 1;
            self.run_left = self.runs[self.run].1;
            self.thread = self.directory.threads[usize::from(self.runs[self.run].0)];
        }
        self.run_left -= 1;
        let thread = usize::from(self.runs[self.run].0);
        let cursor = &mut self.cursors[usize::from(number)];
        let from = cursor.next;
        cursor.next += u32::from(cursor.width);
        let row = &mut self.words[from as usize..][..usize::from(cursor.width)];
        let past = &mut self.past_offsets[thread];
        for open in &self.opens[cursor.opens as usize..][..usize::from(cursor.open_count)] {
            let word = usize::from(open.word);
            let reference = match open.reference {
                Reference::Left(places) => row[word - usize::from(places)],
                Reference::Past(back) => past.back(back),
                Reference::Constant | Reference::RowBefore => 0,
            };
            row[word] = row[word].wrapping_add(reference);
        }
        if cursor.has_place {
            past.push(row[0]);
        }
        if cursor.is_checked {
            let start = self.heap_part.end;
            self.heap_part =
                start..start + shape::check_row(&self.shapes[usize::from(number)], row, &self.heap[start..])?;
        }
        Ok(BlockStep::new(number, from))
    }

    /// The thread of the last step.
    #[inline(always)]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    #[inline]
    pub fn context(&self, step: BlockStep) -> ContextId {
        self.shapes[step.local()].context
    }

    /// Number of the event's shape among those of the trace.
    #[inline]
    pub fn shape(&self, step: BlockStep) -> u32 {
        self.directory.shapes[step.local()].0
    }

    /// The event of the last step.
    #[inline(always)]
    pub fn event(&self, step: BlockStep) -> Event<'_> {
        self.event_of(step, self.thread, self.heap_part.clone())
    }

    /// The event of a step of this block, once its thread and its part of the heap were known.
    #[inline(always)]
    pub fn event_of(&self, step: BlockStep, thread: ThreadId, heap_part: Range<usize>) -> Event<'_> {
        let shape = &self.shapes[step.local()];
        let width = self.cursors[step.local()].width;
        let row = &self.words[step.from()..][..usize::from(width)];
        let kind = shape::join(shape, row, &self.heap[heap_part]);
        Event { thread, context: shape.context, pc: shape.pc, kind }
    }

    /// How many events the block has.
    pub fn events(&self) -> usize {
        self.sequence.len()
    }

    /// The last step's part of the heap.
    pub fn heap_part(&self) -> Range<usize> {
        self.heap_part.clone()
    }

    /// About how much memory it takes.
    pub fn bytes_held(&self) -> usize {
        size_of_val(self.words.as_slice()) + self.heap.len() + size_of_val(self.sequence.as_slice())
    }
}
