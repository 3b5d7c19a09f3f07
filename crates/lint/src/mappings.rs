//! Where pools are mapped: turns an address that the program passed to a function into a place.
//!
//! Programs run without address space randomisation, so that processes of one recording that share a pool have it at the same
//! address; where they do not, the newest mapping answers.

use trace::event::{Place, PoolOffset};

#[derive(Clone, Copy, Debug)]
struct Mapping {
    address: u64,
    end: u64,
    place: Place,
}

#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// Newest last.
    list: Vec<Mapping>,
}

impl Mappings {
    pub fn map(&mut self, address: u64, len: u64, place: Place) {
        self.unmap(address, len);
        self.list.push(Mapping { address, end: address.saturating_add(len), place });
    }

    /// Takes a range away; what is left of a mapping on either side stays.
    pub fn unmap(&mut self, address: u64, len: u64) {
        let end = address.saturating_add(len);
        let mut left = Vec::with_capacity(self.list.len() + 1);
        for mapping in self.list.drain(..) {
            if mapping.end <= address || mapping.address >= end {
                left.push(mapping);
                continue;
            }
            if mapping.address < address {
                left.push(Mapping { end: address, ..mapping });
            }
            if mapping.end > end {
                left.push(Mapping { address: end, place: mapping.at(end), ..mapping });
            }
        }
        self.list = left;
    }

    pub fn place_at(&self, address: u64) -> Option<Place> {
        let inside = |mapping: &&Mapping| (mapping.address..mapping.end).contains(&address);
        self.list.iter().rev().find(inside).map(|mapping| mapping.at(address))
    }
}

impl Mapping {
    fn at(&self, address: u64) -> Place {
        Place { offset: PoolOffset(self.place.offset.0 + (address - self.address)), ..self.place }
    }
}

#[cfg(test)]
mod tests {
    use trace::event::PoolId;

    use super::*;

    #[test]
    fn unmapping_the_middle_leaves_both_ends() {
        let mut mappings = Mappings::default();
        mappings.map(0x1000, 0x3000, Place { pool: PoolId(0), offset: PoolOffset(0x800) });
        mappings.unmap(0x2000, 0x1000);
        assert_eq!(mappings.place_at(0x1fff).map(|p| p.offset.0), Some(0x17ff));
        assert_eq!(mappings.place_at(0x2000), None);
        assert_eq!(mappings.place_at(0x3000).map(|p| p.offset.0), Some(0x2800));
        assert_eq!(mappings.place_at(0x4000), None);
    }
}
