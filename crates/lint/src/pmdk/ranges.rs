//! Sets of bytes of a pool with the place in the code that added each.

use std::cell::Cell;
use std::collections::BTreeMap;

use finding::site::SiteId;

/// Ranges that do not overlap, by start.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    map: BTreeMap<u64, (u64, SiteId)>,
    /// The last range that covered what was asked for: stores to one object come in a row.
    last: Cell<(u64, u64)>,
}

impl Ranges {
    pub fn clear(&mut self) {
        self.map.clear();
        self.last.set((0, 0));
    }

    /// Who added a byte of this range, if anybody has; of several the last by address.
    pub fn overlap(&self, start: u64, end: u64) -> Option<SiteId> {
        let (_, &(other_end, site)) = self.map.range(..end).next_back()?;
        (other_end > start && start < end).then_some(site)
    }

    /// Whether all bytes of this range are in the set.
    pub fn covers(&self, start: u64, end: u64) -> bool {
        let (from, to) = self.last.get();
        if from <= start && end <= to {
            return true;
        }
        let mut at = end;
        while at > start {
            match self.map.range(..at).next_back() {
                Some((&begin, &(stop, _))) if stop >= at => {
                    self.last.set((begin, stop));
                    at = begin;
                }
                _ => return false,
            }
        }
        true
    }

    /// Adds the bytes that are not in the set yet.
    pub fn add(&mut self, start: u64, end: u64, site: SiteId) {
        let mut at = start;
        while at < end {
            let next = self.map.range(..=at).next_back().filter(|(_, (stop, _))| *stop > at);
            if let Some((_, &(stop, _))) = next {
                at = stop;
                continue;
            }
            let gap = self.map.range(at..end).next().map_or(end, |(&begin, _)| begin);
            self.map.insert(at, (gap, site));
            at = gap;
        }
    }

    /// Removes the range that begins here.
    pub fn remove(&mut self, start: u64) {
        self.map.remove(&start);
        self.last.set((0, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_without_losing_who_added_them() {
        let mut ranges = Ranges::default();
        ranges.add(10, 20, SiteId(1));
        ranges.add(30, 40, SiteId(2));
        ranges.add(15, 35, SiteId(3));
        assert!(ranges.covers(10, 40));
        assert!(!ranges.covers(9, 12) && !ranges.covers(39, 41));
        assert_eq!(ranges.overlap(0, 11), Some(SiteId(1)));
        assert_eq!(ranges.overlap(20, 21), Some(SiteId(3)));
        assert_eq!(ranges.overlap(40, 50), None);
        assert_eq!(ranges.overlap(0, 10), None);
        assert!(ranges.covers(31, 39));
        ranges.remove(30);
        assert!(!ranges.covers(31, 32));
        assert!(!ranges.covers(10, 40));
        assert!(ranges.covers(11, 12));
        ranges.clear();
        assert!(!ranges.covers(11, 12));
    }
}
