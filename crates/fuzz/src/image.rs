//! Contents of the pools between two runs.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use recover::pages::Content;
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

/// The pools as a run finds or leaves them. Images that come of each other share the pages that are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// By the pools' order; none: there is no such file.
    pools: Vec<Option<Content>>,
    id: ImageId,
}

impl Image {
    pub fn new(pools: Vec<Option<Content>>) -> Image {
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

    pub fn pools(&self) -> &[Option<Content>] {
        &self.pools
    }

    pub fn pool(&self, number: usize) -> Option<&Content> {
        self.pools.get(number)?.as_ref()
    }

    /// Writes each pool to a file in this folder: `name.0`, `name.1` and so on.
    pub fn write(&self, folder: &Path, name: &str) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for (number, pool) in self.pools.iter().enumerate() {
            if let Some(content) = pool {
                content.write(&File::create(folder.join(format!("{name}.{number}")))?)?;
            }
        }
        Ok(())
    }

    /// What [`write`](Self::write) has written.
    pub fn read(folder: &Path, name: &str, pools: usize) -> io::Result<Image> {
        let pool = |number: usize| match File::open(folder.join(format!("{name}.{number}"))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => Content::of(&file?).map(Some),
        };
        Ok(Image::new((0..pools).map(pool).collect::<io::Result<_>>()?))
    }
}

fn id(pools: &[Option<Content>]) -> ImageId {
    if pools.iter().all(Option::is_none) {
        return ImageId::NONE;
    }
    let mut hash = Xxh3::new();
    for pool in pools {
        hash.update(&pool.as_ref().map_or(u64::MAX, Content::len).to_le_bytes());
        for (number, page) in pool.iter().flat_map(Content::pages) {
            hash.update(&number.to_le_bytes());
            hash.update(&page[..]);
        }
    }
    ImageId(hash.digest128().max(1))
}
