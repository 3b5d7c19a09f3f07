//! The layout of a trace file.
//!
//! ```text
//! file    = magic[8] version[4] zero[4] chunk*
//! chunk   = header[48] head body
//! header  = tag[4] head length[4] body length[4] head raw length[4] body raw length[4] zero[4]
//!           body checksum[8] head checksum[8] header checksum[8]
//! ```
//! Numbers are little-endian; checksums are XXH3-64 of the bytes as stored. Head and body are zstd frames (absent if
//! their length is 0): the head is what an index needs, the body what only a reader of all events needs.
//!
//! | tag | head | body | comes |
//! | --- | --- | --- | --- |
//! | `META` | how the recording was made | | first |
//! | `DEFS` | new modules, contexts, watches, paths, notes, shapes | | before the events that use them |
//! | `POOL` | a new pool's path and length | | before its events |
//! | `PAGE` | pool, numbers of pages | initial content of these pages | right after `POOL` |
//! | `FILE` | a file that was there before: number, path, what it was | | before its events |
//! | `FPAG` | file, numbers of pages | content of these pages before the first change | right after `FILE` |
//! | `EVNT` | directory: shapes with counts, threads, operations | the events (see `block`) | |
//! | `FINL` | pool, final length, numbers and hashes of pages | | at the end |
//! | `FFIN` | what is under each name that was touched: kind, length, hash | | at the end |
//! | `END.` | outcome and number of events | | last: a file without it is incomplete |
//!
//! Nothing refers forward and nothing sits only at the end, so a file that was cut is readable up to its last
//! whole chunk, with the same index. The index is the chain of directories: reading it means reading the heads.

use xxhash_rust::xxh3::xxh3_64;

use crate::bytes::Input;
use crate::error::Malformed;

pub(crate) const MAGIC: [u8; 8] = *b"fptrace\n";
/// Bumped with every change that an older reader would misread.
pub(crate) const VERSION: u32 = 2;
pub(crate) const FILE_HEADER: usize = 16;
pub(crate) const CHUNK_HEADER: usize = 48;

/// Most events in one block: local shape numbers fit 16 bits, with one value to spare for "none".
pub(crate) const BLOCK_EVENTS: usize = 0xffff;
/// A block also ends when its words and heap take this many bytes.
pub(crate) const BLOCK_BYTES: usize = 4 << 20;
/// No head or body is larger than this when unpacked; what claims to be is damaged.
pub(crate) const MAX_RAW: usize = 48 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Meta,
    Definitions,
    Pool,
    Pages,
    File,
    FilePages,
    Events,
    Final,
    FinalNames,
    End,
}

impl Tag {
    const ALL: [(Tag, [u8; 4]); 10] = [
        (Tag::Meta, *b"META"),
        (Tag::Definitions, *b"DEFS"),
        (Tag::Pool, *b"POOL"),
        (Tag::Pages, *b"PAGE"),
        (Tag::File, *b"FILE"),
        (Tag::FilePages, *b"FPAG"),
        (Tag::Events, *b"EVNT"),
        (Tag::Final, *b"FINL"),
        (Tag::FinalNames, *b"FFIN"),
        (Tag::End, *b"END."),
    ];

    fn bytes(self) -> [u8; 4] {
        Tag::ALL[self as usize].1
    }

    fn from_bytes(bytes: &[u8]) -> Option<Tag> {
        Tag::ALL.iter().find(|(_, name)| name == bytes).map(|(tag, _)| *tag)
    }
}

/// A chunk's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub tag: Tag,
    pub head_len: u32,
    pub body_len: u32,
    pub head_raw: u32,
    pub body_raw: u32,
    pub body_sum: u64,
    pub head_sum: u64,
}

impl ChunkHeader {
    pub fn encode(&self) -> [u8; CHUNK_HEADER] {
        let mut out = [0; CHUNK_HEADER];
        out[0..4].copy_from_slice(&self.tag.bytes());
        out[4..8].copy_from_slice(&self.head_len.to_le_bytes());
        out[8..12].copy_from_slice(&self.body_len.to_le_bytes());
        out[12..16].copy_from_slice(&self.head_raw.to_le_bytes());
        out[16..20].copy_from_slice(&self.body_raw.to_le_bytes());
        out[24..32].copy_from_slice(&self.body_sum.to_le_bytes());
        out[32..40].copy_from_slice(&self.head_sum.to_le_bytes());
        let sum = xxh3_64(&out[..40]);
        out[40..48].copy_from_slice(&sum.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8; CHUNK_HEADER]) -> Result<ChunkHeader, Malformed> {
        let mut input = Input(bytes);
        let tag = input.take(4)?;
        let (head_len, body_len, head_raw, body_raw) = (input.u32()?, input.u32()?, input.u32()?, input.u32()?);
        let zero = input.u32()?;
        let (body_sum, head_sum, sum) = (input.u64()?, input.u64()?, input.u64()?);
        if sum != xxh3_64(&bytes[..40]) || zero != 0 {
            return Err(Malformed("wrong checksum of a chunk's header"));
        }
        let tag = Tag::from_bytes(tag).ok_or(Malformed("unknown chunk"))?;
        if head_raw as usize > MAX_RAW || body_raw as usize > MAX_RAW {
            return Err(Malformed("a chunk is too large"));
        }
        Ok(ChunkHeader { tag, head_len, body_len, head_raw, body_raw, body_sum, head_sum })
    }

    /// Bytes of the whole chunk in the file.
    pub fn file_len(&self) -> u64 {
        CHUNK_HEADER as u64 + u64::from(self.head_len) + u64::from(self.body_len)
    }
}

pub(crate) fn file_header() -> [u8; FILE_HEADER] {
    let mut out = [0; FILE_HEADER];
    out[..8].copy_from_slice(&MAGIC);
    out[8..12].copy_from_slice(&VERSION.to_le_bytes());
    out
}
