//! Where a process sees its pools.

use trace::event::{Place, PoolOffset};

use crate::conditions::Span;

/// Ascending, without overlap: the first address, the one after the last, and what the first shows.
#[derive(Clone, Debug, Default)]
pub struct Mapped {
    ranges: Vec<(u64, u64, Place)>,
}

impl Mapped {
    pub fn map(&mut self, address: u64, len: u64, place: Place) {
        self.unmap(address, len);
        let at = self.ranges.partition_point(|&(start, ..)| start < address);
        self.ranges.insert(at, (address, address.saturating_add(len), place));
    }

    pub fn unmap(&mut self, address: u64, len: u64) {
        let end = address.saturating_add(len);
        let old = std::mem::take(&mut self.ranges);
        for (start, stop, place) in old {
            if start < address.min(stop) {
                self.ranges.push((start, stop.min(address), place));
            }
            if end.max(start) < stop {
                let first = end.max(start);
                let offset = PoolOffset(place.offset.0 + (first - start));
                self.ranges.push((first, stop, Place { offset, ..place }));
            }
        }
    }

    /// The bytes of a pool that these are; none if they are ordinary memory.
    #[inline]
    pub fn find(&self, address: u64, len: u64) -> Option<Span> {
        let (&(low, ..), &(_, high, _)) = (self.ranges.first()?, self.ranges.last()?);
        if address < low || address >= high {
            return None;
        }
        let at = self.ranges.partition_point(|&(start, ..)| start <= address).checked_sub(1)?;
        let (start, stop, place) = self.ranges[at];
        if address >= stop {
            return None;
        }
        let len = len.min(stop - address).min(u32::MAX.into()) as u32;
        Some(Span { pool: place.pool, offset: place.offset.0 + (address - start), len })
    }
}

#[cfg(test)]
mod tests {
    use trace::event::PoolId;

    use super::*;

    #[test]
    fn mappings_cover_and_cut_one_another() {
        let place = |pool, offset| Place { pool: PoolId(pool), offset: PoolOffset(offset) };
        let mut mapped = Mapped::default();
        assert_eq!(mapped.find(0, 1), None);
        mapped.map(1000, 1000, place(0, 0));
        mapped.map(1400, 200, place(1, 50));
        mapped.unmap(1900, 500);
        let at = |address| mapped.find(address, 8).map(|span| (span.pool.0, span.offset));
        assert_eq!(at(999), None);
        assert_eq!(at(1000), Some((0, 0)));
        assert_eq!(at(1399), Some((0, 399)));
        assert_eq!(at(1400), Some((1, 50)));
        assert_eq!(at(1600), Some((0, 600)));
        assert_eq!(at(1900), None);
        assert_eq!(mapped.find(1898, 8).unwrap().len, 2);
    }
}
