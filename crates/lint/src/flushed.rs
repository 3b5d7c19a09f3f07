//! For every line that was ever flushed, the flush that last had something to write back.

use finding::site::SiteId;
use persistency::domain::PendingStore;
use persistency::line::{ByteMask, LineId};
use persistency::tracker::Applied;
use rustc_hash::FxHashMap;
use trace::event::{Place, PoolId};

/// The last useful flush of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastFlush {
    pub site: SiteId,
    /// The byte of the line that it named.
    pub byte: u8,
    /// It served stores to different bytes of the line.
    pub several: bool,
    /// How many fences the run had had, modulo 2²³: the epoch that it belongs to.
    epoch: u32,
}

/// 64 bits less site, byte and flag.
const EPOCHS: u32 = 1 << 23;

impl LastFlush {
    /// `fences`: how many the run has had.
    pub(crate) fn new(site: SiteId, place: Place, step: &Applied<'_>, stores: u64, fences: u64) -> LastFlush {
        let several = stores > 1
            && match step.after().line(LineId::of(place)) {
                Some(line) => differ(line.stores().iter().map(PendingStore::mask)),
                // `clflush` has settled them.
                None => differ(step.guaranteed().iter().map(|settled| settled.store.mask())),
            };
        LastFlush { site, byte: (place.offset.0 % 64) as u8, several, epoch: fences as u32 % EPOCHS }
    }

    /// How many fences there were since, if `fences` is how many there are by now. A number beyond 2²³ may come out as a
    /// smaller one.
    pub(crate) fn fences_since(self, fences: u64) -> u32 {
        (fences as u32).wrapping_sub(self.epoch) % EPOCHS
    }
}

/// Whether the stores wrote different bytes.
fn differ(mut masks: impl Iterator<Item = ByteMask>) -> bool {
    let first = masks.next();
    first.is_some_and(|first| masks.any(|mask| !mask.without(first).is_empty()))
}

/// Lines of a page.
const PAGE_LINES: u64 = 64;
const NEVER: u64 = u64::MAX;

/// A table of pages: 8 bytes for each line of a page on which a line was flushed.
#[derive(Debug, Default)]
pub(crate) struct FlushedLines {
    index: FxHashMap<(PoolId, u64), u32>,
    pages: Vec<[u64; PAGE_LINES as usize]>,
    last: Option<((PoolId, u64), u32)>,
}

impl FlushedLines {
    pub fn get(&self, line: LineId) -> Option<LastFlush> {
        let (page, at) = split(line);
        let number = match self.last {
            Some((last, number)) if last == page => number,
            _ => *self.index.get(&page)?,
        };
        let packed = self.pages[number as usize][at];
        (packed != NEVER).then_some(LastFlush {
            site: SiteId(packed as u32),
            byte: (packed >> 32) as u8,
            several: packed >> 40 & 1 == 1,
            epoch: (packed >> 41) as u32,
        })
    }

    pub fn set(&mut self, line: LineId, flush: LastFlush) {
        let (page, at) = split(line);
        let number = match self.last {
            Some((last, number)) if last == page => number,
            _ => *self.index.entry(page).or_insert_with(|| {
                self.pages.push([NEVER; PAGE_LINES as usize]);
                self.pages.len() as u32 - 1
            }),
        };
        self.last = Some((page, number));
        self.pages[number as usize][at] = u64::from(flush.site.0)
            | u64::from(flush.byte) << 32
            | u64::from(flush.several) << 40
            | u64::from(flush.epoch) << 41;
    }
}

fn split(line: LineId) -> ((PoolId, u64), usize) {
    ((line.pool, line.line.0 / PAGE_LINES), (line.line.0 % PAGE_LINES) as usize)
}

#[cfg(test)]
mod tests {
    use trace::event::LineNo;

    use super::*;

    #[test]
    fn what_is_set_is_found() {
        let mut lines = FlushedLines::default();
        let line = |n| LineId { pool: PoolId(1), line: LineNo(n) };
        let flush = LastFlush { site: SiteId(7), byte: 63, several: true, epoch: EPOCHS - 1 };
        assert_eq!(lines.get(line(70)), None);
        lines.set(line(70), flush);
        assert_eq!(lines.get(line(70)), Some(flush));
        assert_eq!(lines.get(line(71)), None);
        assert_eq!(lines.get(line(6)), None);
        lines.set(line(6), LastFlush { several: false, ..flush });
        assert_eq!(lines.get(line(6)).map(|f| f.several), Some(false));
        assert_eq!(lines.get(line(70)), Some(flush));
    }
    #[test]
    fn fences_are_counted_past_the_end_of_the_counter() {
        let flush = LastFlush { site: SiteId(0), byte: 0, several: false, epoch: EPOCHS - 1 };
        assert_eq!(flush.fences_since(u64::from(EPOCHS) * 5 - 1), 0);
        assert_eq!(flush.fences_since(u64::from(EPOCHS) * 5 + 1), 2);
    }
}
