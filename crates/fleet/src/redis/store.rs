//! Blobs in Redis: content by hash, compressed, in pieces. Every read is verified.

use std::io;

use redis::{cmd, pipe};

use super::keys::{KEPT, Keys};
use super::link::{Link, LinkError};
use crate::blob::BlobId;

/// A value of Redis may have 512 MB; smaller ones do not block others for long.
const PIECE: usize = 4 << 20;
const LEVEL: i32 = 3;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("Redis has no blob {0}")]
    Missing(BlobId),
    #[error("blob {0} is damaged: its content has another hash")]
    Damaged(BlobId),
    #[error("cannot compress a blob: {0}")]
    Compress(io::Error),
}

pub(super) fn packed(bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
    zstd::encode_all(bytes, LEVEL).map_err(StoreError::Compress)
}

/// None if it is damaged.
pub(super) fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    zstd::decode_all(bytes).ok()
}

/// Puts a blob there, unless it is.
pub(super) fn put(link: &mut Link, keys: &Keys, bytes: &[u8]) -> Result<BlobId, StoreError> {
    let id = BlobId::of(bytes);
    put_as(link, keys, id, bytes)?;
    Ok(id)
}

pub(super) fn put_as(link: &mut Link, keys: &Keys, id: BlobId, bytes: &[u8]) -> Result<(), StoreError> {
    let key = keys.blob(&id.to_string());
    let pieces: i64 = link.query(cmd("HLEN").arg(&key))?;
    let packed = packed(bytes)?;
    let chunks: Vec<&[u8]> = packed.chunks(PIECE).collect();
    if pieces as usize == chunks.len() + 1 {
        return Ok(());
    }
    for (number, piece) in chunks.iter().enumerate() {
        let () = link.query(cmd("HSET").arg(&key).arg(number).arg(*piece))?;
    }
    // Written last: a blob with a count is whole.
    let () = link.pipeline(
        pipe()
            .cmd("HSET")
            .arg(&key)
            .arg("pieces")
            .arg(chunks.len())
            .ignore()
            .cmd("EXPIRE")
            .arg(&key)
            .arg(KEPT)
            .ignore(),
    )?;
    Ok(())
}

pub(super) fn get(link: &mut Link, keys: &Keys, id: BlobId) -> Result<Vec<u8>, StoreError> {
    let key = keys.blob(&id.to_string());
    let pieces: Option<usize> = link.query(cmd("HGET").arg(&key).arg("pieces"))?;
    let mut packed = Vec::new();
    for number in 0..pieces.ok_or(StoreError::Missing(id))? {
        let piece: Option<Vec<u8>> = link.query(cmd("HGET").arg(&key).arg(number))?;
        packed.extend(piece.ok_or(StoreError::Missing(id))?);
    }
    let bytes = unpacked(&packed).ok_or(StoreError::Damaged(id))?;
    if BlobId::of(&bytes) == id { Ok(bytes) } else { Err(StoreError::Damaged(id)) }
}
