//! Pool content in a trace: initial pages (`PAGE`) and hashes of final ones (`FINL`), zero pages left out.

use std::io;

use xxhash_rust::xxh3::xxh3_128;

use crate::bytes::{Input, PutBytes};
use crate::content::PoolContent;
use crate::error::Malformed;
use crate::event::PoolId;
use crate::tables::PoolInfo;

pub(crate) const PAGE: usize = 4096;
/// Pages that are read from a pool, and stored, in one piece.
const PAGES_AT_ONCE: usize = 256;
/// Hashes in one `FINL` chunk.
const HASHES_AT_ONCE: usize = 16 << 10;

/// Hash of a page's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHash([u8; 16]);

impl PageHash {
    pub fn of(page: &[u8]) -> PageHash {
        PageHash(xxh3_128(page).to_le_bytes())
    }
}

pub(crate) fn put_pool(out: &mut Vec<u8>, info: &PoolInfo) {
    out.text(info.path.as_bytes());
    out.varint(info.len);
}

pub(crate) fn read_pool(bytes: &[u8]) -> Result<PoolInfo, Malformed> {
    let mut input = Input(bytes);
    Ok(PoolInfo { path: input.string()?, len: input.varint()? })
}

/// Calls `page` with number and content of every page that is not zero, by ascending number.
fn each_page<E>(
    content: &mut dyn PoolContent,
    failed: impl Fn(io::Error) -> E,
    mut page: impl FnMut(u64, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = vec![0; PAGES_AT_ONCE * PAGE];
    let mut at = 0u64;
    while let Some(data) = content.data_after(at).map_err(&failed)? {
        let mut start = data.start.max(at) / PAGE as u64;
        let end = data.end.div_ceil(PAGE as u64);
        while start < end {
            let count = (end - start).min(PAGES_AT_ONCE as u64) as usize;
            let buffer = &mut buffer[..count * PAGE];
            content.read_at(start * PAGE as u64, buffer).map_err(&failed)?;
            for (number, bytes) in (start..).zip(buffer.chunks_exact(PAGE)) {
                if !is_zero(bytes) {
                    page(number, bytes)?;
                }
            }
            start += count as u64;
        }
        // A range may end inside a page that has been read whole.
        at = end.max(at / PAGE as u64 + 1) * PAGE as u64;
    }
    Ok(())
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |seen, byte| seen | byte) == 0
}

/// Reads the content of a pool and hands over the head and body of `PAGE` chunks.
pub(crate) fn store_initial<E>(
    pool: PoolId,
    content: &mut dyn PoolContent,
    failed: impl Fn(io::Error) -> E,
    mut chunk: impl FnMut(Vec<u8>, Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mut numbers = Vec::new();
    let mut body = Vec::new();
    each_page(content, failed, |number, bytes| {
        numbers.push(number);
        body.extend_from_slice(bytes);
        if numbers.len() == PAGES_AT_ONCE {
            chunk(numbers_head(pool, &numbers), std::mem::take(&mut body))?;
            numbers.clear();
        }
        Ok(())
    })?;
    if numbers.is_empty() { Ok(()) } else { chunk(numbers_head(pool, &numbers), body) }
}

fn numbers_head(pool: PoolId, numbers: &[u64]) -> Vec<u8> {
    let mut head = Vec::new();
    head.varint(pool.0.into());
    put_numbers(&mut head, numbers);
    head
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    out.varint(numbers.len() as u64);
    let mut last = 0;
    for number in numbers {
        out.varint(number - last);
        last = *number;
    }
}

fn read_numbers(input: &mut Input<'_>) -> Result<Vec<u64>, Malformed> {
    let mut last = 0u64;
    (0..input.count()?)
        .map(|_| {
            last = last.checked_add(input.varint()?).ok_or(Malformed("a page number is too large"))?;
            // Offsets inside the page must not overflow either.
            if last > u64::MAX / PAGE as u64 - 1 { Err(Malformed("a page number is too large")) } else { Ok(last) }
        })
        .collect()
}

/// The head of a `PAGE` chunk.
pub(crate) fn read_pages_head(bytes: &[u8]) -> Result<(PoolId, Vec<u64>), Malformed> {
    let mut input = Input(bytes);
    Ok((PoolId(input.varint32()?), read_numbers(&mut input)?))
}

/// The head of a `FINL` chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FinalPages {
    pub pool: PoolId,
    pub len: u64,
    pub pages: Vec<(u64, PageHash)>,
}

/// Hashes the content of a pool and hands over the head of `FINL` chunks, at least one.
pub(crate) fn store_final<E>(
    pool: PoolId,
    content: &mut dyn PoolContent,
    failed: impl Fn(io::Error) -> E,
    mut chunk: impl FnMut(Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let len = content.len().map_err(&failed)?;
    let mut numbers = Vec::new();
    let mut hashes = Vec::new();
    let head = |numbers: &[u64], hashes: &[u8]| {
        let mut head = Vec::new();
        head.varint(pool.0.into());
        head.varint(len);
        put_numbers(&mut head, numbers);
        head.extend_from_slice(hashes);
        head
    };
    each_page(content, failed, |number, bytes| {
        if numbers.len() == HASHES_AT_ONCE {
            chunk(head(&numbers, &hashes))?;
            numbers.clear();
            hashes.clear();
        }
        numbers.push(number);
        hashes.extend_from_slice(&PageHash::of(bytes).0);
        Ok(())
    })?;
    chunk(head(&numbers, &hashes))
}

pub(crate) fn read_final(bytes: &[u8]) -> Result<FinalPages, Malformed> {
    let mut input = Input(bytes);
    let (pool, len) = (PoolId(input.varint32()?), input.varint()?);
    let numbers = read_numbers(&mut input)?;
    let pages = numbers
        .into_iter()
        .map(|number| Ok((number, PageHash(input.take(16)?.try_into().expect("sixteen bytes")))))
        .collect::<Result<_, Malformed>>()?;
    Ok(FinalPages { pool, len, pages })
}
