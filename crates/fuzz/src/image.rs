//! Contents of the pools between two runs.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

/// Stands for the content of an image: equal ids, equal bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageId(u128);

impl ImageId {
    /// No pool is there.
    pub const NONE: ImageId = ImageId(0);
}

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<ImageId> for String {
    fn from(id: ImageId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for ImageId {
    type Error = String;

    fn try_from(text: String) -> Result<ImageId, String> {
        u128::from_str_radix(&text, 16).map(ImageId).map_err(|_| format!("`{text}` does not stand for an image"))
    }
}

/// The pools as a run finds or leaves them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// By the pools' order; none: there is no such file.
    pools: Vec<Option<Arc<[u8]>>>,
    id: ImageId,
}

impl Image {
    pub fn new(pools: Vec<Option<Arc<[u8]>>>) -> Image {
        let id = id(&pools);
        Image { pools, id }
    }

    /// No pool is there yet.
    pub fn none(pools: usize) -> Image {
        Image { pools: vec![None; pools], id: ImageId::NONE }
    }

    pub fn is_none(&self) -> bool {
        self.id == ImageId::NONE
    }

    pub fn id(&self) -> ImageId {
        self.id
    }

    pub fn pools(&self) -> &[Option<Arc<[u8]>>] {
        &self.pools
    }
}

fn id(pools: &[Option<Arc<[u8]>>]) -> ImageId {
    if pools.iter().all(Option::is_none) {
        return ImageId::NONE;
    }
    let mut hash = Xxh3::new();
    for pool in pools {
        hash.update(&pool.as_ref().map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
        hash.update(pool.as_deref().unwrap_or_default());
    }
    ImageId(hash.digest128().max(1))
}
