//! The block that is being filled: events in the order they came, already taken apart.

use crate::event::{Event, EventKind, ThreadId};
use crate::format::{BLOCK_BYTES, BLOCK_EVENTS};

use super::directory::Boundary;

#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Number of the first event.
    pub first: u64,
    /// Shape (number in the whole trace) of each event.
    pub shapes: Vec<u32>,
    /// Runs of events of one thread: thread and number of events.
    pub runs: Vec<(ThreadId, u32)>,
    /// Rows, one after the other.
    pub words: Vec<u64>,
    pub heap: Vec<u8>,
    pub boundaries: Vec<Boundary>,
}

impl Pending {
    /// Takes an event whose row and heap bytes have been added already.
    pub fn add(&mut self, event: &Event<'_>, shape: u32) {
        match event.kind {
            EventKind::OperationBegin { index } => self.boundary(event.thread, index, true),
            EventKind::OperationEnd { index } => self.boundary(event.thread, index, false),
            _ => {}
        }
        self.shapes.push(shape);
        match self.runs.last_mut() {
            Some((thread, len)) if *thread == event.thread => *len += 1,
            _ => self.runs.push((event.thread, 1)),
        }
    }

    fn boundary(&mut self, thread: ThreadId, index: u64, begin: bool) {
        self.boundaries.push(Boundary { at: self.shapes.len() as u32, thread, index, begin });
    }

    pub fn is_full(&self) -> bool {
        self.shapes.len() >= BLOCK_EVENTS || self.words.len() * 8 + self.heap.len() >= BLOCK_BYTES
    }

    pub fn clear(&mut self, first: u64) {
        self.first = first;
        self.shapes.clear();
        self.runs.clear();
        self.words.clear();
        self.heap.clear();
        self.boundaries.clear();
    }
}
