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

/// A shape of the block and how far its rows have been read.
#[derive(Clone, Copy, Debug)]
struct Local {
    shape: Shape,
    next: u32,
    width: u8,
    has_place: bool,
    is_checked: bool,
    opens: (u32, u32),
}

/// An event of the block: its thread, shape and row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub thread: ThreadId,
    local: u16,
    from: u32,
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
    locals: Vec<Local>,
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
        (self.run, self.run_left) = (0, self.runs.first().map_or(0, |run| run.1));
        Ok(())
    }

    fn read_sequence(&mut self, symbols: &[u8], explicit: &mut Input<'_>) -> Result<(), Malformed> {
        const WRONG: Malformed = Malformed("the order of events in a block makes no sense");
        self.predictor.clear();
        let mut left: Vec<u32> = self.directory.shapes.iter().map(|(_, rows)| *rows).collect();
        let mut fresh = 0u16;
        let mut symbols = symbols.iter();
        for &(thread, len) in &self.runs {
            let past = &mut self.pasts[usize::from(thread)];
            for &symbol in symbols.by_ref().take(len as usize) {
                let next = match symbol {
                    FRESH => {
                        self.predictor.grow();
                        fresh = fresh.wrapping_add(1);
                        fresh.wrapping_sub(1)
                    }
                    EXPLICIT => u16::from_le_bytes([explicit.byte()?, explicit.byte()?]),
                    0..FRESH => self.predictor.predicted(*past, symbol),
                    _ => return Err(WRONG),
                };
                if next >= fresh || next == NONE {
                    return Err(WRONG);
                }
                let left = left.get_mut(usize::from(next)).ok_or(WRONG)?;
                *left = left.checked_sub(1).ok_or(WRONG)?;
                self.predictor.took(past, symbol, next);
                self.sequence.push(next);
            }
        }
        Ok(())
    }

    fn read_columns(
        &mut self,
        shapes: &[Shape],
        heads: &mut Input<'_>,
        planes: &mut Input<'_>,
    ) -> Result<(), Malformed> {
        self.locals.clear();
        self.opens.clear();
        let mut total = 0usize;
        for &(shape, rows) in &self.directory.shapes {
            let shape = shapes[shape as usize];
            let width = shape.width();
            self.locals.push(Local {
                shape,
                next: total as u32,
                width: width as u8,
                has_place: shape.code.has_place(),
                is_checked: shape.is_checked(),
                opens: (0, 0),
            });
            total += rows as usize * width;
        }
        if total > MAX_RAW / 8 {
            return Err(Malformed("a block is too large"));
        }
        self.words.clear();
        self.words.resize(total, 0);
        let mut words = &mut self.words[..];
        for (local, &(_, rows)) in self.locals.iter_mut().zip(&self.directory.shapes) {
            let width = usize::from(local.width);
            let (own, rest) = words.split_at_mut(rows as usize * width);
            words = rest;
            local.opens.0 = self.opens.len() as u32;
            for word in 0..width {
                self.opens.extend(column::decode(own, width, word, heads, planes)?);
            }
            local.opens.1 = self.opens.len() as u32;
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

    /// Goes to the next event: resolves its row. Only if not [`Decoder::is_done`].
    #[inline(always)]
    pub fn step(&mut self) -> Result<Step, Malformed> {
        let number = self.sequence[self.at];
        self.at += 1;
        if self.run_left == 0 {
            self.run += 1;
            self.run_left = self.runs[self.run].1;
        }
        self.run_left -= 1;
        let thread = usize::from(self.runs[self.run].0);
        let local = &mut self.locals[usize::from(number)];
        let from = local.next;
        local.next += u32::from(local.width);
        let row = &mut self.words[from as usize..][..usize::from(local.width)];
        let past = &mut self.past_offsets[thread];
        for open in &self.opens[local.opens.0 as usize..local.opens.1 as usize] {
            let word = usize::from(open.word);
            let reference = match open.reference {
                Reference::Left(places) => row[word - usize::from(places)],
                Reference::Past(back) => past.back(back),
                Reference::Constant | Reference::RowBefore => 0,
            };
            row[word] = row[word].wrapping_add(reference);
        }
        if local.has_place {
            past.push(row[0]);
        }
        if local.is_checked {
            let start = self.heap_part.end;
            self.heap_part = start..start + shape::check_row(&local.shape, row, &self.heap[start..])?;
        }
        Ok(Step { thread: self.directory.threads[thread], local: number, from })
    }

    #[inline]
    pub fn context(&self, step: Step) -> ContextId {
        self.locals[usize::from(step.local)].shape.context
    }

    /// The event of the last step.
    #[inline(always)]
    pub fn event(&self, step: Step) -> Event<'_> {
        let local = &self.locals[usize::from(step.local)];
        let row = &self.words[step.from as usize..][..usize::from(local.width)];
        let kind = shape::join(&local.shape, row, &self.heap[self.heap_part.clone()]);
        Event { thread: step.thread, context: local.shape.context, pc: local.shape.pc, kind }
    }
}
