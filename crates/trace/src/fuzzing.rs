//! For tests and fuzzers only: altering a trace behind its checksums.

use xxhash_rust::xxh3::xxh3_64;

use crate::format::{CHUNK_HEADER, ChunkHeader, FILE_HEADER, MAX_RAW};

/// Unpacks one chunk of a trace, alters some bytes of it, and packs it again with right checksums.
/// `choose(n)` returns a number below `n`. Anything that is not a trace comes back as it is.
pub fn alter(bytes: &[u8], mut choose: impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut chunks = Vec::new();
    let mut at = FILE_HEADER;
    while let Some(header) = header_at(bytes, at) {
        chunks.push((at, header));
        at += header.file_len() as usize;
    }
    if chunks.is_empty() {
        return bytes.to_vec();
    }
    let (start, mut header) = chunks[choose(chunks.len())];
    let head_at = start + CHUNK_HEADER;
    let body_at = head_at + header.head_len as usize;
    let end = body_at + header.body_len as usize;
    let (Some(mut head), Some(mut body)) = (unpack(&bytes[head_at..body_at]), unpack(&bytes[body_at..end])) else {
        return bytes.to_vec();
    };
    for _ in 0..1 + choose(4) {
        let part = if choose(2) == 0 || body.is_empty() { &mut head } else { &mut body };
        if part.is_empty() {
            continue;
        }
        let place = choose(part.len());
        match choose(6) {
            0 => part[place] = choose(256) as u8,
            1 => part[place] ^= 1 << choose(8),
            2 => part[place] = 0xff,
            3 => part.truncate(place),
            4 => part.insert(place, choose(256) as u8),
            _ => _ = part.remove(place),
        }
    }
    let (packed_head, packed_body) = (pack(&head), pack(&body));
    header.head_len = packed_head.len() as u32;
    header.body_len = packed_body.len() as u32;
    header.head_raw = head.len() as u32;
    header.body_raw = body.len() as u32;
    header.head_sum = xxh3_64(&packed_head);
    header.body_sum = xxh3_64(&packed_body);
    [&bytes[..start], &header.encode(), &packed_head, &packed_body, &bytes[end..]].concat()
}

fn header_at(bytes: &[u8], at: usize) -> Option<ChunkHeader> {
    let header = bytes.get(at..at + CHUNK_HEADER)?.try_into().ok()?;
    let header = ChunkHeader::decode(header).ok()?;
    (header.file_len() <= (bytes.len() - at) as u64).then_some(header)
}

fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    if packed.is_empty() { Some(Vec::new()) } else { zstd::bulk::decompress(packed, MAX_RAW).ok() }
}

fn pack(raw: &[u8]) -> Vec<u8> {
    if raw.is_empty() { Vec::new() } else { zstd::bulk::compress(raw, 1).unwrap_or_default() }
}
