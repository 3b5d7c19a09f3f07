//! From a full [`Pending`] block to the raw bytes of its directory and of its columns.

use crate::bytes::PutBytes;
use crate::shape::Shape;

use super::column::{self, PAST_OFFSETS, Reference, Rows};
use super::directory::Directory;
use super::pending::Pending;
use super::sequence::{EXPLICIT, Past, Predictor};

/// What the encoder needs to know of a shape.
#[derive(Clone, Copy, Debug)]
struct Facts {
    width: u8,
    has_place: bool,
    /// Number of blocks that it occurred in more than once.
    blocks: u32,
    /// Where its words' references are in `Encoder::references`.
    references: u32,
}

impl Facts {
    /// What was cheapest in one block is so in most: references are chosen anew only from time to time.
    fn chooses_again(&self) -> bool {
        self.blocks.is_power_of_two() || self.blocks.is_multiple_of(16)
    }
}

const ABSENT: u32 = u32::MAX;

/// Keeps the table of shapes and its buffers from block to block.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    facts: Vec<Facts>,
    references: Vec<Reference>,
    /// Number of a shape inside the block, by its number in the trace.
    local: Vec<u32>,
    predictor: Predictor,
    sequence: Vec<u16>,
    symbols: Vec<u8>,
    explicit: Vec<u8>,
    runs: Vec<u8>,
    heads: Vec<u8>,
    planes: Vec<u8>,
    codes: Vec<u64>,
    rows: Vec<u64>,
    stands: Vec<u32>,
    trail: Vec<u64>,
}

impl Encoder {
    pub fn define(&mut self, shape: &Shape) {
        let width = shape.width();
        let references = self.references.len() as u32;
        self.references.resize(self.references.len() + width, Reference::Constant);
        self.facts.push(Facts { width: width as u8, has_place: shape.code.has_place(), blocks: 0, references });
        self.local.push(ABSENT);
    }

    /// Writes the block's directory to `head` and its columns to `body`.
    pub fn encode(&mut self, block: &Pending, head: &mut Vec<u8>, body: &mut Vec<u8>) {
        let mut directory =
            Directory { first: block.first, boundaries: block.boundaries.clone(), ..Directory::default() };
        let run_threads = self.order(block, &mut directory);
        self.group(block, &directory, &run_threads);
        self.columns(&directory);
        for &(shape, _) in &directory.shapes {
            self.local[shape as usize] = ABSENT;
        }
        directory.encode(head);
        for part in [&self.explicit, &self.runs, &self.heads, &self.planes] {
            body.varint(part.len() as u64);
        }
        for part in [&self.symbols, &self.explicit, &self.runs, &self.heads, &self.planes, &block.heap] {
            body.extend_from_slice(part);
        }
    }

    /// Numbers shapes and threads by appearance and codes their order. Returns the thread's number of each run.
    fn order(&mut self, block: &Pending, directory: &mut Directory) -> Vec<u16> {
        self.predictor.clear();
        self.sequence.clear();
        self.symbols.clear();
        self.explicit.clear();
        self.runs.clear();
        let mut pasts: Vec<Past> = Vec::new();
        let mut run_threads = Vec::with_capacity(block.runs.len());
        let mut shapes = block.shapes.iter();
        for &(thread, len) in &block.runs {
            let number = directory.threads.iter().position(|known| *known == thread).unwrap_or_else(|| {
                directory.threads.push(thread);
                pasts.push(Past::default());
                pasts.len() - 1
            });
            run_threads.push(number as u16);
            self.runs.varint(number as u64);
            self.runs.varint(len.into());
            let past = &mut pasts[number];
            for &shape in shapes.by_ref().take(len as usize) {
                let known = self.local[shape as usize];
                let fresh = known == ABSENT;
                let local = if fresh { directory.shapes.len() as u32 } else { known };
                if fresh {
                    self.local[shape as usize] = local;
                    directory.shapes.push((shape, 0));
                }
                directory.shapes[local as usize].1 += 1;
                let local = local as u16;
                let symbol = self.predictor.code(past, local, fresh);
                self.symbols.push(symbol);
                if symbol == EXPLICIT {
                    self.explicit.extend_from_slice(&local.to_le_bytes());
                }
                self.sequence.push(local);
            }
        }
        run_threads
    }

    /// Sorts the rows by shape and notes for each where its thread stood.
    fn group(&mut self, block: &Pending, directory: &Directory, run_threads: &[u16]) {
        let mut next_row = Vec::with_capacity(directory.shapes.len());
        let mut next_word = Vec::with_capacity(directory.shapes.len());
        let (mut row, mut word) = (0u32, 0u32);
        for &(shape, rows) in &directory.shapes {
            next_row.push(row);
            next_word.push(word);
            row += rows;
            word += rows * u32::from(self.facts[shape as usize].width);
        }
        self.rows.resize(word as usize, 0);
        self.stands.resize(row as usize, 0);

        let mut places = vec![0u32; directory.threads.len()];
        let mut shapes = block.shapes.iter();
        for (&thread, &(_, len)) in run_threads.iter().zip(&block.runs) {
            let run = shapes.by_ref().take(len as usize);
            places[usize::from(thread)] += run.filter(|shape| self.facts[**shape as usize].has_place).count() as u32;
        }
        let mut stand = 0;
        for thread in &mut places {
            let count = *thread;
            *thread = stand + PAST_OFFSETS as u32;
            stand = *thread + count;
        }
        self.trail.clear();
        self.trail.resize(stand as usize, 0);

        let mut events = block.shapes.iter().zip(&self.sequence);
        let mut words = &block.words[..];
        for (&thread, &(_, len)) in run_threads.iter().zip(&block.runs) {
            let stand = &mut places[usize::from(thread)];
            for (&shape, &local) in events.by_ref().take(len as usize) {
                let Facts { width, has_place, .. } = self.facts[shape as usize];
                let (source, rest) = words.split_at(width.into());
                words = rest;
                let word = &mut next_word[usize::from(local)];
                // A loop, because rows are short and a call of memcpy is not.
                self.rows[*word as usize..].iter_mut().zip(source).for_each(|(to, from)| *to = *from);
                *word += u32::from(width);
                let row = &mut next_row[usize::from(local)];
                self.stands[*row as usize] = *stand;
                *row += 1;
                if has_place {
                    self.trail[*stand as usize] = source[0];
                    *stand += 1;
                }
            }
        }
    }

    fn columns(&mut self, directory: &Directory) {
        self.heads.clear();
        self.planes.clear();
        let (mut words, mut stands) = (&self.rows[..], &self.stands[..]);
        for &(shape, rows) in &directory.shapes {
            let facts = &mut self.facts[shape as usize];
            let width = usize::from(facts.width);
            let (own, rest) = words.split_at(rows as usize * width);
            let (own_stands, rest_stands) = stands.split_at(rows as usize);
            (words, stands) = (rest, rest_stands);
            let rows = Rows { words: own, width, stands: own_stands, trail: &self.trail };
            let references = &mut self.references[facts.references as usize..][..width];
            if own_stands.len() > 1 {
                facts.blocks += 1;
                if facts.chooses_again() {
                    references.iter_mut().enumerate().for_each(|(word, choice)| *choice = rows.choose(word));
                }
            }
            for (word, &reference) in references.iter().enumerate() {
                let reference = if own_stands.len() == 1 { Reference::Constant } else { reference };
                column::encode(rows, word, reference, &mut self.codes, &mut self.heads, &mut self.planes);
            }
        }
    }
}
