//! The lines of a slot, in this process: looking up what a command would do must not cost a system call per line.

use std::collections::hash_map::Entry;

use crash::image::LineBytes;
use persistency::line::{LINE_BYTES, LineId};
use recover::slot::{Slot, SlotError};
use rustc_hash::FxHashMap;
use trace::event::PoolId;

const PAGE_BYTES: usize = 4096;
const LINES_PER_PAGE: u64 = (PAGE_BYTES / LINE_BYTES) as u64;

/// More than this is given back: 64 MiB.
const MOST_PAGES: usize = 16 << 10;

/// A page of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageId {
    pool: PoolId,
    number: u64,
}

impl PageId {
    pub fn of(line: LineId) -> PageId {
        PageId { pool: line.pool, number: line.line.0 / LINES_PER_PAGE }
    }
}

/// Pages as the slot holds them. Whoever changes the slot says so here.
#[derive(Debug, Default)]
pub(super) struct SlotLines {
    pages: FxHashMap<PageId, Box<[u8; PAGE_BYTES]>>,
}

impl SlotLines {
    /// Nothing is known of the slot any more.
    pub fn clear(&mut self) {
        self.pages.clear();
    }

    pub fn limit(&mut self) {
        if self.pages.len() > MOST_PAGES {
            self.clear();
        }
    }

    pub fn load(&mut self, slot: &Slot, page: PageId) -> Result<(), SlotError> {
        if let Entry::Vacant(entry) = self.pages.entry(page) {
            let mut bytes = Box::new([0; PAGE_BYTES]);
            slot.read(page.pool, page.number * PAGE_BYTES as u64, &mut *bytes)?;
            entry.insert(bytes);
        }
        Ok(())
    }

    /// What the slot holds here now.
    pub fn get(&mut self, slot: &Slot, line: LineId) -> Result<LineBytes, SlotError> {
        self.load(slot, PageId::of(line))?;
        Ok(self.known(line).unwrap_or([0; LINE_BYTES]))
    }

    /// The same, if it was looked at before.
    pub fn known(&self, line: LineId) -> Option<LineBytes> {
        let page = self.pages.get(&PageId::of(line))?;
        Some(*page[within(line)..].first_chunk().expect("lines do not cross pages"))
    }

    /// The slot holds this here now.
    pub fn put(&mut self, line: LineId, bytes: &LineBytes) {
        if let Some(page) = self.pages.get_mut(&PageId::of(line)) {
            page[within(line)..within(line) + LINE_BYTES].copy_from_slice(bytes);
        }
    }
}

fn within(line: LineId) -> usize {
    (line.line.0 % LINES_PER_PAGE) as usize * LINE_BYTES
}
