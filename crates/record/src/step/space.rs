//! The mappings of one address space that can be PM: shared mappings of files.

use trace::event::{Place, PoolId, PoolOffset};

use super::code::CodeMap;
use super::operations::Operations;
use super::pools::{Pools, SharedFile};

pub const PAGE: u64 = 4096;

/// A shared mapping of a file, pool or not.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// File offset of `start`.
    pub offset: u64,
    pub file: SharedFile,
}

/// A part of a pool at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub address: u64,
    pub place: Place,
    pub len: u64,
}

/// One address space; threads share it.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// Sorted by address, without overlap.
    mappings: Vec<Mapping>,
    pub code: CodeMap,
    pub operations: Operations,
}

impl Space {
    pub fn has_mappings(&self) -> bool {
        !self.mappings.is_empty()
    }

    pub fn mapping_at(&self, address: u64) -> Option<&Mapping> {
        self.mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&address))
    }

    /// Mappings that overlap the range.
    pub fn mappings_in(&self, start: u64, end: u64) -> impl Iterator<Item = &Mapping> {
        self.mappings.iter().filter(move |mapping| mapping.start < end && start < mapping.end)
    }

    /// Adds a mapping; the range must be free.
    pub fn insert(&mut self, mapping: Mapping) {
        let at = self.mappings.partition_point(|other| other.start < mapping.start);
        self.mappings.insert(at, mapping);
    }

    /// Takes a range away.
    pub fn remove(&mut self, start: u64, end: u64) {
        let mut kept = Vec::with_capacity(self.mappings.len() + 1);
        for mapping in self.mappings.drain(..) {
            if mapping.end <= start || end <= mapping.start {
                kept.push(mapping);
                continue;
            }
            if mapping.start < start {
                kept.push(Mapping { end: start, ..mapping.clone() });
            }
            if end < mapping.end {
                kept.push(Mapping { start: end, offset: mapping.offset + (end - mapping.start), ..mapping });
            }
        }
        self.mappings = kept;
    }

    /// The parts of a range that are PM, by ascending address.
    pub fn pieces(&self, pools: &Pools, address: u64, len: u64) -> Vec<Piece> {
        let end = address.saturating_add(len);
        let mut pieces: Vec<Piece> = Vec::new();
        for mapping in self.mappings_in(address, end) {
            let Some(pool) = pools.find(mapping.file.key) else { continue };
            let from = address.max(mapping.start);
            let len = end.min(mapping.end) - from;
            let offset = PoolOffset(mapping.offset + (from - mapping.start));
            // Two mappings that continue each other are one piece of the pool.
            if let Some(last) = pieces.last_mut()
                && last.address + last.len == from
                && last.place.pool == pool
                && last.place.offset.0 + last.len == offset.0
            {
                last.len += len;
            } else {
                pieces.push(Piece { address: from, place: Place { pool, offset }, len });
            }
        }
        pieces
    }
}

/// Cuts a piece at 4 KiB boundaries of the pool offset (rule 2), ascending.
pub fn cut(piece: Piece) -> Vec<Piece> {
    let mut parts = Vec::new();
    let mut done = 0;
    while done < piece.len {
        let offset = piece.place.offset.0 + done;
        let len = (PAGE - offset % PAGE).min(piece.len - done);
        parts.push(Piece {
            address: piece.address + done,
            place: Place { pool: piece.place.pool, offset: PoolOffset(offset) },
            len,
        });
        done += len;
    }
    parts
}

/// A piece that is not mapped anywhere: a range of the pool's file.
pub fn file_piece(pool: PoolId, offset: u64, len: u64) -> Piece {
    Piece { address: 0, place: Place { pool, offset: PoolOffset(offset) }, len }
}
