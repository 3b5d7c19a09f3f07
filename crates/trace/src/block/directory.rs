//! The directory of a block: what occurs in it, for the index and for counting.

use crate::bytes::{Input, PutBytes, unzigzag, zigzag};
use crate::error::Malformed;
use crate::event::ThreadId;
use crate::format::BLOCK_EVENTS;

/// Begin or end of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Boundary {
    /// Place in the block.
    pub at: u32,
    pub thread: ThreadId,
    pub index: u64,
    pub begin: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directory {
    pub first: u64,
    /// Shapes in order of first appearance, with the number of their events.
    pub shapes: Vec<(u32, u32)>,
    /// Threads in order of first appearance.
    pub threads: Vec<ThreadId>,
    pub boundaries: Vec<Boundary>,
}

impl Directory {
    pub fn events(&self) -> u32 {
        self.shapes.iter().map(|(_, rows)| rows).sum()
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.varint(self.first);
        out.varint(self.shapes.len() as u64);
        let mut last = 0u64;
        for &(shape, rows) in &self.shapes {
            out.varint(zigzag(u64::from(shape).wrapping_sub(last)));
            out.varint(rows.into());
            last = shape.into();
        }
        out.varint(self.threads.len() as u64);
        for thread in &self.threads {
            out.varint(thread.0.into());
        }
        out.varint(self.boundaries.len() as u64);
        for boundary in &self.boundaries {
            out.varint(u64::from(boundary.at) << 1 | u64::from(boundary.begin));
            out.varint(boundary.thread.0.into());
            out.varint(boundary.index);
        }
    }

    /// `shapes` is the number of shapes that are defined.
    pub fn decode(bytes: &[u8], shapes: usize) -> Result<Directory, Malformed> {
        let mut input = Input(bytes);
        let mut directory = Directory { first: input.varint()?, ..Directory::default() };
        let mut last = 0u64;
        let mut events = 0u64;
        for _ in 0..input.count()? {
            last = last.wrapping_add(unzigzag(input.varint()?));
            let rows = input.varint32()?;
            events += u64::from(rows);
            if last >= shapes as u64 || rows == 0 {
                return Err(Malformed("a block uses an undefined shape"));
            }
            directory.shapes.push((last as u32, rows));
        }
        if events > BLOCK_EVENTS as u64 {
            return Err(Malformed("a block has too many events"));
        }
        for _ in 0..input.count()? {
            directory.threads.push(ThreadId(input.varint32()?));
        }
        for _ in 0..input.count()? {
            let at = input.varint()?;
            if at >> 1 >= events {
                return Err(Malformed("an operation boundary lies outside its block"));
            }
            let (thread, index) = (ThreadId(input.varint32()?), input.varint()?);
            directory.boundaries.push(Boundary { at: (at >> 1) as u32, thread, index, begin: at & 1 == 1 });
        }
        Ok(directory)
    }
}
