//! All images of a campaign: a tree whose root is "no pool" (PMFuzz §4.6). A node is an image, the edge to its parent is the case that
//! made it and, for a crash image, where power failed. Images with the same content are one node.
//!
//! Stored is what differs from the parent, line by line, compressed; far from the root an image is stored whole, so that few steps
//! rebuild any of them.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use recover::pages::{Content, PAGE};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::case::CaseId;
use crate::image::{Image, ImageId};
use crate::journal::Journal;

const LINE: usize = 64;
/// Steps from an image to one that is stored whole.
const MOST_STEPS: u32 = 8;
/// Bytes of rebuilt images that are kept.
const KEPT: usize = 256 << 20;
const LEVEL: i32 = 3;
/// Of a difference: what is not ours may unpack to anything.
const MOST_BYTES: u64 = 1 << 30;

/// Where power failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// Before this event of the case's recording.
    pub event: u64,
    /// `program-order`, `guaranteed-only` or `random`.
    pub state: String,
}

/// An image of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub id: ImageId,
    /// What the case began with.
    pub parent: ImageId,
    /// The case that left it, or that it is a crash image of.
    pub case: CaseId,
    pub crash: Option<Crash>,
    /// What it is stored against.
    against: ImageId,
    /// From there to one that is stored whole.
    steps: u32,
    at: u64,
    bytes: u64,
}

/// The tree on disk, and what of it is in memory.
#[derive(Debug)]
pub struct Tree {
    pools: usize,
    journal: Journal,
    data: File,
    end: u64,
    nodes: Vec<Node>,
    by_id: FxHashMap<ImageId, usize>,
    recent: VecDeque<Arc<Image>>,
}

impl Tree {
    pub fn open(folder: &Path, pools: usize) -> io::Result<Tree> {
        std::fs::create_dir_all(folder)?;
        let (journal, nodes) = Journal::open::<Node>(&folder.join("tree.jsonl"))?;
        let data = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(folder.join("data"))?;
        let end = nodes.iter().map(|node| node.at.saturating_add(node.bytes)).max().unwrap_or(0);
        let end = end.min(data.metadata()?.len());
        // Bytes without a node are those of a process that was killed.
        data.set_len(end)?;
        let by_id = nodes.iter().enumerate().map(|(number, node)| (node.id, number)).collect();
        Ok(Tree { pools, journal, data, end, nodes, by_id, recent: VecDeque::new() })
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn node(&self, id: ImageId) -> Option<&Node> {
        self.by_id.get(&id).map(|number| &self.nodes[*number])
    }

    /// How many pools an image has.
    pub fn pools(&self) -> usize {
        self.pools
    }

    /// Bytes on disk.
    pub fn stored(&self) -> u64 {
        self.end
    }

    /// Adds an image, unless one with the same content is there; whether it was new.
    pub fn add(&mut self, image: &Arc<Image>, parent: ImageId, case: CaseId, crash: Option<Crash>) -> io::Result<bool> {
        if image.is_none() || self.by_id.contains_key(&image.id()) {
            return Ok(false);
        }
        let steps = self.node(parent).map_or(0, |node| node.steps + 1);
        let (against, steps) = if steps > MOST_STEPS { (ImageId::NONE, 0) } else { (parent, steps) };
        let base = self.image(against)?;
        let difference = difference(&base, image);
        if difference.len() as u64 > MOST_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more than 1 GiB of a pool was changed at once"));
        }
        let packed = zstd::bulk::compress(&difference, LEVEL)?;
        self.data.write_all_at(&packed, self.end)?;
        let (at, bytes) = (self.end, packed.len() as u64);
        let node = Node { id: image.id(), parent, case, crash, against, steps, at, bytes };
        self.journal.add(&node)?;
        self.end += bytes;
        self.by_id.insert(node.id, self.nodes.len());
        self.nodes.push(node);
        self.keep(Arc::clone(image));
        Ok(true)
    }

    /// The content of an image.
    pub fn image(&mut self, id: ImageId) -> io::Result<Arc<Image>> {
        if id == ImageId::NONE {
            return Ok(Arc::new(Image::none(self.pools)));
        }
        if let Some(image) = self.recent.iter().find(|image| image.id() == id) {
            return Ok(Arc::clone(image));
        }
        let missing = || io::Error::new(io::ErrorKind::InvalidData, format!("image {id} is not in the tree"));
        let node = self.node(id).ok_or_else(missing)?.clone();
        // What it is stored against came before it: else this would never end.
        if self.by_id.get(&node.against) >= self.by_id.get(&id) {
            return Err(damaged(id));
        }
        let packed = self.packed(&node)?;
        let difference = unpacked(id, &packed)?;
        let base = self.image(node.against)?;
        let image = applied(&base, &difference).filter(|image| image.id() == id);
        let image = Arc::new(image.ok_or_else(|| damaged(id))?);
        self.keep(Arc::clone(&image));
        Ok(image)
    }

    /// What is stored of a node.
    pub fn packed(&self, node: &Node) -> io::Result<Vec<u8>> {
        if node.at.checked_add(node.bytes).is_none_or(|end| end > self.end) {
            return Err(damaged(node.id));
        }
        let mut packed = vec![0; node.bytes as usize];
        self.data.read_exact_at(&mut packed, node.at)?;
        Ok(packed)
    }

    /// The image of a node of another tree that began as this one, from what is stored of it there. `others` are images of that tree.
    pub fn rebuilt(
        &mut self,
        node: &Node,
        packed: &[u8],
        others: &FxHashMap<ImageId, Arc<Image>>,
    ) -> io::Result<Arc<Image>> {
        let base = match others.get(&node.against) {
            Some(image) => Arc::clone(image),
            None => self.image(node.against)?,
        };
        let image = applied(&base, &unpacked(node.id, packed)?).filter(|image| image.id() == node.id);
        image.map(Arc::new).ok_or_else(|| damaged(node.id))
    }

    fn keep(&mut self, image: Arc<Image>) {
        let size =
            |image: &Image| image.pools().iter().flatten().map(|pool| pool.pages().count() * PAGE).sum::<usize>();
        self.recent.push_front(image);
        let mut total: usize = self.recent.iter().map(|image| size(image)).sum();
        while total > KEPT && self.recent.len() > 1 {
            total -= self.recent.pop_back().map_or(0, |image| size(&image));
        }
    }
}

/// Per pool: 0 (no file), or 1, its length, how many lines differ, and each with its number.
fn difference(base: &Image, image: &Image) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, pool) in image.pools().iter().enumerate() {
        let Some(pool) = pool else {
            out.push(0);
            continue;
        };
        let base = cut(base.pool(number), pool.len());
        let pages: BTreeSet<u64> = pool.pages().chain(base.pages()).map(|(number, _)| number).collect();
        let mut lines: Vec<(u64, &[u8; LINE])> = Vec::new();
        for page in pages.into_iter().filter(|page| !pool.shares(&base, *page)) {
            let (here, there) = (pool.page(page).as_chunks::<LINE>().0, base.page(page).as_chunks::<LINE>().0);
            let first = page * here.len() as u64;
            let pairs = here.iter().zip(there).enumerate().filter(|(_, (here, there))| here != there);
            lines.extend(pairs.map(|(at, (here, _))| (first + at as u64, here)));
        }
        out.push(1);
        out.extend(pool.len().to_le_bytes());
        out.extend((lines.len() as u64).to_le_bytes());
        for (line, bytes) in lines {
            out.extend(line.to_le_bytes());
            out.extend(bytes);
        }
    }
    out
}

fn damaged(id: ImageId) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("image {id} is damaged"))
}

fn unpacked(id: ImageId, packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut difference = Vec::new();
    zstd::stream::Decoder::new(packed)?.take(MOST_BYTES + 1).read_to_end(&mut difference)?;
    if difference.len() as u64 > MOST_BYTES { Err(damaged(id)) } else { Ok(difference) }
}

/// A content with another length; nothing is all zeros.
fn cut(content: Option<&Content>, len: u64) -> Content {
    let mut content = content.cloned().unwrap_or_default();
    content.set_len(len);
    content
}

/// None: the bytes are no difference.
fn applied(base: &Image, mut difference: &[u8]) -> Option<Image> {
    let mut pools = Vec::new();
    while let Some((there, rest)) = difference.split_first() {
        difference = rest;
        if *there == 0 {
            pools.push(None);
            continue;
        }
        let mut number = || {
            let (bytes, rest) = difference.split_first_chunk::<8>()?;
            difference = rest;
            Some(u64::from_le_bytes(*bytes))
        };
        let (len, lines) = (number()?, number()?);
        let mut pool = cut(base.pool(pools.len()), len);
        for _ in 0..lines {
            let (line, rest) = difference.split_first_chunk::<8>()?;
            let (bytes, rest) = rest.split_first_chunk::<LINE>()?;
            difference = rest;
            pool.put(u64::from_le_bytes(*line).checked_mul(LINE as u64).filter(|at| *at < len)?, bytes);
        }
        pools.push(Some(pool));
    }
    Some(Image::new(pools))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn changed(image: &Image, random: &mut Random) -> Image {
        let mut pool = image.pool(0).cloned().unwrap_or_default();
        let longer = (pool.len() + random.below(9000)).max(4000);
        pool.set_len(longer - random.below(4000));
        for _ in 0..3 {
            let at = random.below(pool.len());
            pool.put(at, &[random.draw() as u8]);
        }
        Image::new(vec![Some(pool), (!random.once_in(5)).then(|| Content::of_bytes(&[7; 65]))])
    }

    #[test]
    fn every_image_is_rebuilt_from_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random::new(9);
        let mut images = vec![Arc::new(Image::none(2))];
        {
            let mut tree = Tree::open(folder.path(), 2).unwrap();
            for number in 0..60 {
                let parent = Arc::clone(&images[random.index(images.len())]);
                let image = Arc::new(changed(&parent, &mut random));
                assert!(tree.add(&image, parent.id(), CaseId(number), None).unwrap());
                assert!(!tree.add(&image, parent.id(), CaseId(number), None).unwrap(), "equal images are one");
                images.push(image);
            }
        }
        let mut tree = Tree::open(folder.path(), 2).unwrap();
        for image in images.iter().rev() {
            assert_eq!(tree.image(image.id()).unwrap(), *image);
        }
        assert_eq!(tree.nodes().len(), 60);
    }
}
