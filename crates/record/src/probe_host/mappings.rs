//! Where a process sees its pools.

use trace::event::{Place, PoolId, PoolOffset};

/// A range of addresses that shows a byte range of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    pool: PoolId,
    offset: u64,
}

impl Mapping {
    #[inline]
    fn place(&self, address: u64) -> Place {
        Place { pool: self.pool, offset: PoolOffset(self.offset.wrapping_add(address - self.start)) }
    }
}

/// The PM mappings of one process, sorted, with the one that was hit last: accesses come in runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    sorted: Vec<Mapping>,
    last: usize,
}

impl Mappings {
    pub fn map(&mut self, start: u64, len: u64, pool: PoolId, offset: u64) {
        self.unmap(start, len);
        let end = start.saturating_add(len);
        if end > start {
            let at = self.sorted.partition_point(|m| m.start < start);
            self.sorted.insert(at, Mapping { start, end, pool, offset });
        }
    }

    pub fn unmap(&mut self, start: u64, len: u64) {
        let end = start.saturating_add(len);
        let mut kept = Vec::with_capacity(self.sorted.len() + 1);
        for m in &self.sorted {
            if m.start < start {
                kept.push(Mapping { end: m.end.min(start), ..*m });
            }
            if m.end > end {
                let start = m.start.max(end);
                kept.push(Mapping { start, offset: m.offset.wrapping_add(start - m.start), ..*m });
            }
            // A mapping that lies outside the range entirely was pushed by exactly one of the two branches.
        }
        self.sorted = kept;
        self.last = 0;
    }

    /// The place of `len` bytes at `address` if one mapping holds them all.
    #[inline]
    pub fn whole(&mut self, address: u64, len: u64) -> Option<Place> {
        if let Some(m) = self.sorted.get(self.last)
            && m.start <= address
            && len <= m.end.saturating_sub(address)
        {
            return Some(m.place(address));
        }
        self.search(address).filter(|m| len <= m.end - address).map(|m| m.place(address))
    }

    /// Cuts `len` bytes at `address` at the boundaries of mappings; what is not PM is left out.
    pub fn pieces(&mut self, address: u64, len: u64) -> Vec<(Place, std::ops::Range<usize>)> {
        let end = address.saturating_add(len);
        let overlapping = self.sorted.iter().filter(|m| m.start < end && m.end > address);
        overlapping
            .map(|m| {
                let (from, to) = (m.start.max(address), m.end.min(end));
                (m.place(from), (from - address) as usize..(to - address) as usize)
            })
            .collect()
    }

    fn search(&mut self, address: u64) -> Option<Mapping> {
        let at = self.sorted.partition_point(|m| m.end <= address);
        let found = self.sorted.get(at).filter(|m| m.start <= address).copied()?;
        self.last = at;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(pool: u32, offset: u64) -> Place {
        Place { pool: PoolId(pool), offset: PoolOffset(offset) }
    }

    #[test]
    fn unmapping_the_middle_leaves_both_ends() {
        let mut m = Mappings::default();
        m.map(0x1000, 0x3000, PoolId(1), 0x8000);
        m.unmap(0x2000, 0x1000);
        assert_eq!(m.whole(0x1ff8, 8), Some(place(1, 0x8ff8)));
        assert_eq!(m.whole(0x2000, 8), None);
        assert_eq!(m.whole(0x3000, 8), Some(place(1, 0xa000)));
        assert_eq!(m.whole(0x4000, 1), None);
    }

    #[test]
    fn a_new_mapping_covers_an_old_one() {
        let mut m = Mappings::default();
        m.map(0x1000, 0x1000, PoolId(0), 0);
        m.map(0x3000, 0x1000, PoolId(0), 0x1000);
        m.map(0x1800, 0x2000, PoolId(1), 0);
        assert_eq!(m.whole(0x17ff, 1), Some(place(0, 0x7ff)));
        assert_eq!(m.whole(0x1800, 8), Some(place(1, 0)));
        assert_eq!(m.whole(0x37f8, 8), Some(place(1, 0x1ff8)));
        assert_eq!(m.whole(0x3800, 8), Some(place(0, 0x1800)));
    }

    #[test]
    fn an_access_across_two_mappings_is_cut() {
        let mut m = Mappings::default();
        m.map(0x1000, 0x1000, PoolId(0), 0);
        m.map(0x2000, 0x1000, PoolId(1), 0x5000);
        assert_eq!(m.whole(0x1ffc, 8), None);
        assert_eq!(m.pieces(0x1ffc, 8), vec![(place(0, 0xffc), 0..4), (place(1, 0x5000), 4..8)]);
        assert_eq!(m.pieces(0x2ffc, 8), vec![(place(1, 0x5ffc), 0..4)]);
    }
}
