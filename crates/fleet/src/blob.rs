//! Content that is identified by its hash.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// SHA-256 of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlobId([u8; 32]);

impl BlobId {
    pub fn of(bytes: &[u8]) -> BlobId {
        BlobId(Sha256::digest(bytes).into())
    }

    /// Of several parts. Where one ends counts.
    pub fn of_parts(parts: &[&[u8]]) -> BlobId {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        BlobId(hash.finalize().into())
    }

    pub fn of_file(path: &Path) -> io::Result<BlobId> {
        let (mut file, mut hash) = (File::open(path)?, Sha256::new());
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(BlobId(hash.finalize().into())),
                len => hash.update(&buffer[..len]),
            }
        }
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobId({self})")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a hash")]
pub struct BadId(String);

impl FromStr for BlobId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<BlobId, BadId> {
        let bad = || BadId(text.to_owned());
        let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or_else(bad)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Ok(BlobId(bytes))
    }
}

impl TryFrom<String> for BlobId {
    type Error = BadId;

    fn try_from(text: String) -> Result<BlobId, BadId> {
        text.parse()
    }
}

impl From<BlobId> for String {
    fn from(id: BlobId) -> String {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_and_read() {
        let id = BlobId::of(b"abc");
        assert_eq!(id.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "ba78", &"g".repeat(64), &"0".repeat(65)] {
            assert!(wrong.parse::<BlobId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn where_a_part_ends_counts() {
        assert_ne!(BlobId::of_parts(&[b"ab", b"c"]), BlobId::of_parts(&[b"a", b"bc"]));
    }
}
