//! What a line with very many pending stores has with all of them, without going through them at every crash point.
//!
//! A lock or a counter in PM that nobody flushes gathers a pending store with every use, hundreds of thousands in a run.
//! From one point to the next only a few are added.

use persistency::line::{LINE_BYTES, LineId};
use persistency::point::LineView;
use rustc_hash::FxHashMap;
use trace::event::EventId;

use crate::image::{GuaranteedImage, LineBytes};

/// Lines with fewer pending stores are put together anew each time.
const MANY: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Known {
    /// The oldest pending store: as long as it is the same, nothing was settled.
    oldest: EventId,
    applied: usize,
    bytes: LineBytes,
}

#[derive(Debug, Default)]
pub(crate) struct NewestContents {
    known: FxHashMap<LineId, Known>,
}

impl NewestContents {
    /// What is guaranteed has changed in ways that leave no trace among the pending stores.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// All stores of a dirty line.
    pub fn bytes(&mut self, line: &LineView<'_>, guaranteed: &GuaranteedImage) -> LineBytes {
        let stores = line.stores();
        let fresh = |oldest| Known { oldest, applied: 0, bytes: guaranteed.line(line.id()) };
        let Some(oldest) = stores.first().map(|store| store.event) else { return guaranteed.line(line.id()) };
        if stores.len() < MANY {
            return apply(line, fresh(oldest), guaranteed).bytes;
        }
        let known = self.known.get(&line.id()).copied();
        let known = known.filter(|known| known.oldest == oldest && known.applied <= stores.len());
        let newest = apply(line, known.unwrap_or_else(|| fresh(oldest)), guaranteed);
        self.known.insert(line.id(), newest);
        newest.bytes
    }
}

fn apply(line: &LineView<'_>, mut known: Known, guaranteed: &GuaranteedImage) -> Known {
    let stores = line.stores();
    for store in &stores[known.applied..] {
        let stored = line.bytes(store).expect("the walk's tracker keeps bytes");
        debug_assert!(store.start as usize + stored.len() <= LINE_BYTES);
        known.bytes[store.start as usize..][..stored.len()].copy_from_slice(stored);
    }
    known.applied = stores.len();
    guaranteed.cut(line.id(), &mut known.bytes);
    known
}
