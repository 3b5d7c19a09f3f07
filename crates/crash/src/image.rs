//! The guaranteed image along a trace, and crash images: the guaranteed one and the lines that differ from it.

use std::sync::Arc;

use persistency::effect::Effect;
use persistency::files::{FileRule, FileRuleKind};
use persistency::line::{LINE_BYTES, LineId};
use persistency::tracker::Applied;
use trace::event::{Event, EventId, EventKind, FlushTarget, PoolId};
use trace::{FileTree, OutOfRange, PoolImage, ReadError, Tables, TraceReader};
use xxhash_rust::xxh3::Xxh3;

use crate::changes::{ChangeCursor, GuaranteedChanges};
use verdict::position::CrashPositions;

/// The bytes of a line.
pub type LineBytes = [u8; LINE_BYTES];

pub(crate) const PAGE_BYTES: u64 = 4096;
pub(crate) const LINES_PER_PAGE: u64 = PAGE_BYTES / LINE_BYTES as u64;

/// What is guaranteed to be in PM at one place of a trace.
#[derive(Debug)]
pub struct GuaranteedImage {
    pools: Vec<PoolImage>,
    files: Box<dyn FileRule>,
    /// Pools that an event has named so far.
    appeared: Vec<bool>,
    /// The first event that has not happened.
    at: EventId,
    positions: Arc<CrashPositions>,
}

impl GuaranteedImage {
    /// The pools as they were when the trace began.
    pub fn initial(reader: &TraceReader) -> Result<Self, ReadError> {
        let pools = reader.initial_images()?;
        let files = FileRuleKind::default().build(reader.files_to_restore()?);
        let appeared = vec![false; pools.len()];
        let (at, positions) = Default::default();
        Ok(GuaranteedImage { pools, files, appeared, at, positions })
    }

    /// The same image, for a walk of its own: pages are shared.
    pub(crate) fn copy(&self) -> GuaranteedImage {
        GuaranteedImage {
            pools: self.pools.clone(),
            files: self.files.copy(),
            appeared: self.appeared.clone(),
            at: self.at,
            positions: Arc::clone(&self.positions),
        }
    }

    /// How many pages of pools have changed between the two.
    pub(crate) fn pages_not_shared(&self, other: &GuaranteedImage) -> usize {
        let mut count = 0;
        self.pools.iter().zip(&other.pools).for_each(|(own, other)| own.differing(other, |_, _, _| count += 1));
        count
    }

    /// The first event that has not happened.
    pub fn at(&self) -> EventId {
        self.at
    }

    pub(crate) fn set_at(&mut self, at: EventId) {
        self.at = at;
    }

    /// See [`CrashPositions`].
    pub(crate) fn position(&self) -> u64 {
        self.positions.number(self.at)
    }

    pub(crate) fn set_positions(&mut self, positions: Arc<CrashPositions>) {
        self.positions = positions;
    }

    /// Back to the beginning of the same trace. Cursors stay valid.
    pub(crate) fn rewind(&mut self, reader: &TraceReader) -> Result<(), ReadError> {
        self.pools = reader.initial_images()?;
        self.files = FileRuleKind::default().build(reader.files_to_restore()?);
        self.appeared.fill(false);
        Ok(())
    }

    /// The files beside the pools, and all names.
    pub fn files(&self) -> &FileTree {
        self.files.certain()
    }

    pub fn pools(&self) -> impl Iterator<Item = PoolId> + use<> {
        (0..self.pools.len() as u32).map(PoolId)
    }

    /// The file's length. All bytes past it read as zero here. A pool that the trace does not have, which others may name, is empty.
    pub fn len(&self, pool: PoolId) -> u64 {
        self.pools.get(pool.0 as usize).map_or(0, PoolImage::len)
    }

    /// Are there no pools?
    pub fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    /// Has an event named the pool yet? If not, its file may not have been there.
    pub fn has_appeared(&self, pool: PoolId) -> bool {
        self.appeared.get(pool.0 as usize).is_some_and(|appeared| *appeared)
    }

    /// Numbers and content of the 4 KiB pages that are not all zero, ascending; a last page may reach past the end.
    pub fn pages(&self, pool: PoolId) -> impl Iterator<Item = (u64, &[u8; PAGE_BYTES as usize])> {
        let image = &self.pools[pool.0 as usize];
        let inside = image.len().div_ceil(PAGE_BYTES);
        image.page_numbers_in(0..inside).filter_map(|number| Some((number, image.page(number)?)))
    }

    /// The content of a line.
    pub fn line(&self, id: LineId) -> LineBytes {
        let image = self.pools.get(id.pool.0 as usize);
        let mut bytes = [0; LINE_BYTES];
        if let Some(page) = image.and_then(|image| image.page(id.line.0 / LINES_PER_PAGE)) {
            let at = (id.line.0 % LINES_PER_PAGE) as usize * LINE_BYTES;
            bytes.copy_from_slice(&page[at..at + LINE_BYTES]);
        }
        self.cut(id, &mut bytes);
        bytes
    }

    /// What changed since this cursor was used last.
    pub fn changes(&self, cursor: &mut ChangeCursor) -> GuaranteedChanges {
        cursor.follow(&self.pools)
    }

    /// Stores past the end of a file, in its last page, are memory that no file holds.
    pub(crate) fn cut(&self, id: LineId, bytes: &mut LineBytes) {
        let inside = self.len(id.pool).saturating_sub(id.line.0.saturating_mul(LINE_BYTES as u64));
        if inside < LINE_BYTES as u64 {
            bytes[inside as usize..].fill(0);
        }
    }

    /// Takes what an event made certain.
    pub(crate) fn apply(&mut self, event: &Event<'_>, step: &Applied<'_>, tables: &Tables) -> Result<(), OutOfRange> {
        if let EventKind::File(change) = &event.kind {
            self.files.apply(change, tables)?;
        }
        if let Some(pool) = pool_of(&event.kind) {
            self.appeared[pool.0 as usize] = true;
        }
        for settled in step.guaranteed() {
            let bytes = step.bytes(settled).expect("the walk's tracker keeps bytes");
            let start = settled.line.start().offset.0 + u64::from(settled.store.start);
            self.pools[settled.line.pool.0 as usize].write(start, bytes)?;
        }
        match step.effect {
            Effect::Zeroed { place, len } if len > 0 => {
                self.pools[place.pool.0 as usize].zero(place.offset.0, len);
            }
            Effect::Resized { pool, len } => {
                self.pools[pool.0 as usize].resize(len);
            }
            _ => {}
        }
        Ok(())
    }
}

fn pool_of(kind: &EventKind<'_>) -> Option<PoolId> {
    match *kind {
        EventKind::Store { place, .. }
        | EventKind::Rmw { place, .. }
        | EventKind::Load { place, .. }
        | EventKind::Map { place, .. }
        | EventKind::Unmap { place, .. }
        | EventKind::Msync { place, .. }
        | EventKind::KernelWrite { place, .. }
        | EventKind::FileWrite { place, .. }
        | EventKind::FileZero { place, .. }
        | EventKind::Flush { target: FlushTarget::Pool(place), .. } => Some(place.pool),
        EventKind::Fsync { pool, .. } | EventKind::Resize { pool, .. } => Some(pool),
        _ => None,
    }
}

/// The bytes of a crash state: the guaranteed image, and the lines that differ from it.
#[derive(Clone, Debug)]
pub struct CrashImage<'g> {
    guaranteed: &'g GuaranteedImage,
    lines: Vec<(LineId, LineBytes)>,
}

/// Images along one trace, under the same rules, have equal ones only if they are equal; but for one pair in 2¹²⁸.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageKey {
    at: EventId,
    lines: u128,
}

impl<'g> CrashImage<'g> {
    pub(crate) fn new(guaranteed: &'g GuaranteedImage, lines: Vec<(LineId, LineBytes)>) -> Self {
        CrashImage { guaranteed, lines }
    }

    /// An image that need not be possible: to ask what recovery would make of it. `lines` are ascending.
    pub fn imagined(guaranteed: &'g GuaranteedImage, lines: Vec<(LineId, LineBytes)>) -> Self {
        CrashImage { guaranteed, lines }
    }

    /// What all lines but [`lines`](Self::lines) have; also where the lengths of the pools are.
    pub fn guaranteed(&self) -> &'g GuaranteedImage {
        self.guaranteed
    }

    /// The lines that differ from the guaranteed image, ascending.
    pub fn lines(&self) -> &[(LineId, LineBytes)] {
        &self.lines
    }

    pub fn key(&self) -> ImageKey {
        let mut hasher = Xxh3::new();
        for (id, bytes) in &self.lines {
            hasher.update(&id.pool.0.to_le_bytes());
            hasher.update(&id.line.0.to_le_bytes());
            hasher.update(bytes);
        }
        ImageKey { at: self.guaranteed.at, lines: hasher.digest128() }
    }

    /// The content of any line.
    pub fn line(&self, id: LineId) -> LineBytes {
        match self.lines.binary_search_by_key(&id, |&(line, _)| line) {
            Ok(at) => self.lines[at].1,
            Err(_) => self.guaranteed.line(id),
        }
    }
}
