//! Pool content in a trace: initial pages (`PAGE`) and hashes of final ones (`FINL`), zero pages left out.

use std::io;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_128;

use crate::bytes::{Input, PutBytes};
use crate::content::PoolContent;
use crate::error::Malformed;
use crate::event::{FileId, PoolId};
use crate::file_tree::FoundName;
use crate::image::PoolImage;
use crate::tables::{FileInfo, FileKind, PoolInfo};

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

pub(crate) fn put_file(out: &mut Vec<u8>, info: &FileInfo) {
    out.text(info.path.as_bytes());
    out.varint(info.mode.into());
    out.varint(info.xattrs.len() as u64);
    for (name, value) in &info.xattrs {
        out.text(name.as_bytes());
        out.text(value);
    }
    match &info.kind {
        FileKind::Regular { file, len, pool } => {
            out.push(0);
            out.varint(file.0.into());
            out.varint(*len);
            out.varint(pool.map_or(0, |pool| u64::from(pool.0) + 1));
        }
        FileKind::Directory => out.push(1),
        FileKind::Symlink { target } => {
            out.push(2);
            out.text(target.as_bytes());
        }
    }
}

pub(crate) fn read_file(bytes: &[u8]) -> Result<FileInfo, Malformed> {
    let mut input = Input(bytes);
    let (path, mode) = (input.string()?, input.varint32()?);
    let xattrs =
        (0..input.count()?).map(|_| Ok((input.string()?, input.blob()?.to_vec()))).collect::<Result<_, Malformed>>()?;
    let kind = match input.byte()? {
        0 => FileKind::Regular {
            file: FileId(input.varint32()?),
            len: input.varint()?,
            pool: input.varint32()?.checked_sub(1).map(PoolId),
        },
        1 => FileKind::Directory,
        2 => FileKind::Symlink { target: input.string()? },
        _ => return Err(Malformed("unknown kind of file")),
    };
    Ok(FileInfo { path, kind, mode, xattrs })
}

/// What is under a name at the end.
pub(crate) fn put_found(out: &mut Vec<u8>, path: &str, found: &FoundName) {
    out.text(path.as_bytes());
    match found {
        FoundName::Nothing => out.push(0),
        FoundName::Regular { mode, content } => {
            out.push(if content.is_some() { 1 } else { 2 });
            out.varint((*mode).into());
            out.extend_from_slice(&content.unwrap_or_default().to_le_bytes());
        }
        FoundName::Directory { mode } => {
            out.push(3);
            out.varint((*mode).into());
        }
        FoundName::Symlink { target } => {
            out.push(4);
            out.text(target.as_bytes());
        }
    }
}

pub(crate) fn read_found(bytes: &[u8]) -> Result<Vec<(String, FoundName)>, Malformed> {
    let mut input = Input(bytes);
    let mut all = Vec::new();
    while !input.is_empty() {
        let path = input.string()?;
        let found = match input.byte()? {
            0 => FoundName::Nothing,
            tag @ (1 | 2) => {
                let mode = input.varint32()?;
                let content = u128::from_le_bytes(input.take(16)?.try_into().expect("sixteen bytes"));
                FoundName::Regular { mode, content: (tag == 1).then_some(content) }
            }
            3 => FoundName::Directory { mode: input.varint32()? },
            4 => FoundName::Symlink { target: input.string()? },
            _ => return Err(Malformed("unknown kind of file")),
        };
        all.push((path, found));
    }
    Ok(all)
}

/// Calls `page` with number and content of every page that is not zero, by ascending number.
fn each_page<E>(
    content: &mut dyn PoolContent,
    failed: impl Fn(io::Error) -> E,
    mut page: impl FnMut(u64, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut walked = content.for_a_walk();
    let content = walked.as_deref_mut().unwrap_or(content);
    // All ranges before the first is read: reading may make data of what follows (`for_a_walk`).
    let mut ranges = Vec::new();
    let mut at = 0u64;
    while let Some(data) = content.data_after(at).map_err(&failed)? {
        let (start, end) = (data.start.max(at) / PAGE as u64, data.end.div_ceil(PAGE as u64));
        ranges.push(start..end);
        // A range may end inside a page that will be read whole.
        at = end.max(at / PAGE as u64 + 1) * PAGE as u64;
    }
    let mut buffer = vec![0; PAGES_AT_ONCE * PAGE];
    for Range { mut start, end } in ranges {
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
    }
    Ok(())
}

/// All of a content, in memory.
pub fn read_image(content: &mut dyn PoolContent) -> io::Result<PoolImage> {
    let mut image = PoolImage::new(content.len()?);
    each_page(
        content,
        |error| error,
        |number, bytes| image.write(number * PAGE as u64, bytes).map_err(|_| io::ErrorKind::FileTooLarge.into()),
    )?;
    // The last page may hold more than the file.
    let len = image.len();
    image.zero(len, u64::MAX - len);
    Ok(image)
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
