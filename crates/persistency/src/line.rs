//! A cache line of a pool and sets of bytes and granules inside it.

use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

use trace::event::{LineNo, Place, PoolId, PoolOffset};

/// Bytes of a cache line. All x86-64 processors with PM support have 64 (CPUID.01H:EBX[15:8] × 8).
pub const LINE_BYTES: usize = 64;
/// Bytes of a granule: what reaches PM whole or not at all (Intel SDM vol. 3 §9.1.1: an aligned quadword).
pub const GRANULE_BYTES: usize = 8;

/// A line of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LineId {
    pub pool: PoolId,
    pub line: LineNo,
}

impl Hash for LineId {
    /// One word to mix instead of two: tables of lines are asked for every store. Pools are few and lines far below 2⁴⁸.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.line.0 ^ u64::from(self.pool.0).rotate_right(16));
    }
}

impl LineId {
    /// The line that holds this byte.
    pub fn of(place: Place) -> Self {
        LineId { pool: place.pool, line: place.offset.line() }
    }

    /// The line's first byte.
    pub fn start(self) -> Place {
        Place { pool: self.pool, offset: PoolOffset(self.line.0 * LINE_BYTES as u64) }
    }
}

/// A set of bytes of a line: bit *i* is byte *i*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ByteMask(pub u64);

impl ByteMask {
    pub const EMPTY: ByteMask = ByteMask(0);

    /// `len` bytes from `start`; together they stay inside the line.
    pub fn range(start: u8, len: u8) -> Self {
        debug_assert!(start as usize + len as usize <= LINE_BYTES);
        if len == 0 {
            return ByteMask(0);
        }
        ByteMask((u64::MAX >> (64 - u32::from(len))) << start)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many bytes.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    pub fn and(self, other: ByteMask) -> ByteMask {
        ByteMask(self.0 & other.0)
    }

    pub fn or(self, other: ByteMask) -> ByteMask {
        ByteMask(self.0 | other.0)
    }

    /// This set without `other`.
    pub fn without(self, other: ByteMask) -> ByteMask {
        ByteMask(self.0 & !other.0)
    }

    /// The granules that have at least one byte in the set.
    pub fn granules(self) -> GranuleMask {
        let mut mask = 0;
        for granule in 0..8 {
            if (self.0 >> (granule * GRANULE_BYTES)) & 0xff != 0 {
                mask |= 1 << granule;
            }
        }
        GranuleMask(mask)
    }
}

/// A set of granules of a line: bit *i* is bytes *8i* to *8i+7*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GranuleMask(pub u8);

impl GranuleMask {
    pub const EMPTY: GranuleMask = GranuleMask(0);

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many granules.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The bytes of these granules.
    pub fn bytes(self) -> ByteMask {
        ByteMask((0..8).filter(|g| self.0 >> g & 1 == 1).fold(0, |mask, g| mask | 0xff << (8 * g)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_exactly_their_range() {
        for start in 0..64u8 {
            for len in 0..=64 - start {
                let mask = ByteMask::range(start, len);
                for byte in 0..64 {
                    assert_eq!(
                        mask.0 >> byte & 1 == 1,
                        (start..start + len).contains(&byte),
                        "{start}+{len} at {byte}"
                    );
                }
            }
        }
    }

    #[test]
    fn granules_and_bytes_agree() {
        assert_eq!(ByteMask::range(7, 2).granules(), GranuleMask(0b11));
        assert_eq!(ByteMask::range(8, 8).granules(), GranuleMask(0b10));
        assert_eq!(GranuleMask(0b10).bytes(), ByteMask::range(8, 8));
    }
}
