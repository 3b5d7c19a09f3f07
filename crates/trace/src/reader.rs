//! Reading a trace: its tables and index are loaded when it is opened, its events block by block.

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::block::directory::Directory;
use crate::bytes::Input;
use crate::cursor::{Events, Only};
use crate::definitions;
use crate::error::{Malformed, ReadError};
use crate::event::{ContextId, EventId, FileId, PoolId, ThreadId};
use crate::file_tree::{FileTree, FoundName};
use crate::format::{FILE_HEADER, Tag};
use crate::image::PoolImage;
use crate::near::NearBlocks;
use crate::pages::{self, FinalPages, PAGE};
use crate::scan::{Chunk, ChunkFile};
use crate::shape::Shape;
use crate::tables::{ContextNode, FileKind, Outcome, Pool, Tables};
use crate::unexplained::Unexplained;

/// How the file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With everything that belongs to a trace.
    Complete(Outcome),
    /// In the middle: the recording, or the copying of the file, was cut off.
    Cut { at: u64 },
    /// With bytes that make no sense; events before them can be read.
    Damaged { at: u64, what: &'static str },
}

/// A block of events and its place in the total order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockAt {
    pub chunk: Chunk,
    pub first: u64,
    pub events: u32,
}

/// A trace that was opened.
#[derive(Debug)]
pub struct TraceReader {
    pub(crate) file: ChunkFile,
    tables: Tables,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) blocks: Vec<BlockAt>,
    pages: Vec<(PoolId, Chunk)>,
    finals: Vec<(PoolId, Chunk)>,
    file_pages: Vec<(FileId, Chunk)>,
    final_names: Vec<(String, FoundName)>,
    events: u64,
    ending: Ending,
    fingerprint: u128,
    /// The pools as they were, once somebody has asked.
    images: OnceLock<Vec<PoolImage>>,
    /// The files as they were, once somebody has asked.
    tree: OnceLock<FileTree>,
    unexplained: Unexplained,
    pub(crate) near: NearBlocks,
}

impl TraceReader {
    /// Opens a trace and loads all that its events refer to. A trace that ends early opens as well: see
    /// [`TraceReader::ending`].
    pub fn open(path: &Path) -> Result<TraceReader, ReadError> {
        let file = ChunkFile::open(path)?;
        let mut reader = TraceReader {
            file,
            tables: Tables { contexts: vec![ContextNode::default()], ..Tables::default() },
            shapes: Vec::new(),
            blocks: Vec::new(),
            pages: Vec::new(),
            finals: Vec::new(),
            file_pages: Vec::new(),
            final_names: Vec::new(),
            tree: OnceLock::new(),
            unexplained: Unexplained::default(),
            events: 0,
            ending: Ending::Cut { at: 0 },
            images: OnceLock::new(),
            fingerprint: 0,
            near: NearBlocks::default(),
        };
        reader.ending = match reader.scan() {
            Ok(ending) => ending,
            Err(ReadError::Corrupt { offset, what, .. }) => Ending::Damaged { at: offset, what },
            Err(error) => return Err(error),
        };
        Ok(reader)
    }

    fn scan(&mut self) -> Result<Ending, ReadError> {
        let mut offset = FILE_HEADER as u64;
        while let Some(chunk) = self.file.chunk_at(offset)? {
            let head = self.file.head(&chunk)?;
            offset += chunk.header.file_len();
            // The header has the sums of what follows it.
            let so_far = self.fingerprint.to_le_bytes();
            self.fingerprint = xxh3_128(&[&so_far[..], &chunk.header.encode()].concat());
            let outcome = self.take(chunk, &head).map_err(|what| self.file.corrupt(chunk.offset, what))?;
            if let Some(outcome) = outcome {
                if offset != self.file.len() {
                    return Err(self.file.corrupt(offset, Malformed("bytes after the end of the trace")));
                }
                return Ok(Ending::Complete(outcome));
            }
        }
        Ok(Ending::Cut { at: offset.min(self.file.len()) })
    }

    fn take(&mut self, chunk: Chunk, head: &[u8]) -> Result<Option<Outcome>, Malformed> {
        match chunk.header.tag {
            Tag::Meta => self.tables.meta = definitions::read_meta(head)?,
            Tag::Definitions => definitions::read_into(head, &mut self.tables, &mut self.shapes)?,
            Tag::Pool => self.tables.pools.push(Pool { info: pages::read_pool(head)?, initial_pages: 0 }),
            Tag::Pages => {
                let (id, numbers) = pages::read_pages_head(head)?;
                let pool = self.tables.pools.get_mut(id.0 as usize).ok_or(Malformed("pages of no pool"))?;
                if chunk.header.body_raw as usize != numbers.len() * PAGE {
                    return Err(Malformed("pages without content"));
                }
                pool.initial_pages += numbers.len() as u64;
                self.pages.push((id, chunk));
            }
            Tag::File => {
                let info = pages::read_file(head)?;
                if let FileKind::Regular { pool: Some(pool), .. } = info.kind
                    && pool.0 as usize >= self.tables.pools.len()
                {
                    return Err(Malformed("a file is a pool that is not there"));
                }
                self.tables.files.push(info);
            }
            Tag::FilePages => {
                let (id, numbers) = pages::read_pages_head(head)?;
                if chunk.header.body_raw as usize != numbers.len() * PAGE {
                    return Err(Malformed("pages without content"));
                }
                self.file_pages.push((FileId(id.0), chunk));
            }
            Tag::FinalNames => self.final_names.extend(pages::read_found(head)?),
            Tag::Events => {
                let directory = Directory::decode(head, self.shapes.len())?;
                if directory.first != self.events {
                    return Err(Malformed("a block of events is missing"));
                }
                self.events += u64::from(directory.events());
                self.blocks.push(BlockAt { chunk, first: directory.first, events: directory.events() });
            }
            Tag::Final => {
                let FinalPages { pool, .. } = pages::read_final(head)?;
                if pool.0 as usize >= self.tables.pools.len() {
                    return Err(Malformed("final content of no pool"));
                }
                self.finals.push((pool, chunk));
            }
            Tag::End => {
                let mut input = Input(head);
                if input.u64()? != self.events {
                    return Err(Malformed("the number of events is wrong"));
                }
                return definitions::read_outcome(&mut input).map(Some);
            }
        }
        Ok(None)
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What the file says where it is damaged: who needs all of it should not begin.
    pub fn undamaged(&self) -> Result<(), ReadError> {
        match self.ending() {
            Ending::Damaged { at, what } => Err(self.file.corrupt(at, Malformed(what))),
            Ending::Complete(_) | Ending::Cut { .. } => Ok(()),
        }
    }

    pub fn ending(&self) -> Ending {
        self.ending
    }

    pub fn is_complete(&self) -> bool {
        matches!(self.ending, Ending::Complete(_))
    }

    /// Number of events that can be read.
    pub fn event_count(&self) -> u64 {
        self.events
    }

    /// Bytes of the file.
    pub fn file_len(&self) -> u64 {
        self.file.len()
    }

    /// Stands for the content of the whole file: equal recordings have equal ones, others differ.
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// All events.
    pub fn events(&self) -> Events<'_> {
        self.events_in(EventId(0)..EventId(self.events))
    }

    /// Events of a part of the total order.
    pub fn events_in(&self, range: Range<EventId>) -> Events<'_> {
        Events::new(self, range, Only::All)
    }

    /// Events of one thread; blocks without it are not unpacked.
    pub fn events_of_thread(&self, thread: ThreadId) -> Events<'_> {
        Events::new(self, EventId(0)..EventId(self.events), Only::Thread(thread))
    }

    /// Events with one call path; blocks without it are not unpacked.
    pub fn events_of_context(&self, context: ContextId) -> Events<'_> {
        Events::new(self, EventId(0)..EventId(self.events), Only::Context(context))
    }

    /// The events from the begin of operation `index` to its end, both included; to the last event if it has no end.
    pub fn operation(&self, index: u64) -> Result<Option<Range<EventId>>, ReadError> {
        let mut begin = None;
        for block in &self.blocks {
            for boundary in self.directory(block)?.boundaries.iter().filter(|boundary| boundary.index == index) {
                let at = block.first + u64::from(boundary.at);
                match begin {
                    None if boundary.begin => begin = Some(EventId(at)),
                    Some(begin) if !boundary.begin => return Ok(Some(begin..EventId(at + 1))),
                    _ => {}
                }
            }
        }
        Ok(begin.map(|begin| begin..EventId(self.events)))
    }

    pub(crate) fn directory(&self, block: &BlockAt) -> Result<Directory, ReadError> {
        let head = self.file.head(&block.chunk)?;
        Directory::decode(&head, self.shapes.len()).map_err(|what| self.file.corrupt(block.chunk.offset, what))
    }

    /// Calls `page` with the number and the content of each 4 KiB page of a pool's initial content that is not zero.
    pub fn initial_pages(&self, pool: PoolId, page: impl FnMut(u64, &[u8])) -> Result<(), ReadError> {
        self.pages_of(self.pages.iter().filter(|(of, _)| *of == pool).map(|(_, chunk)| chunk), page)
    }

    fn pages_of<'c>(
        &self,
        chunks: impl Iterator<Item = &'c Chunk>,
        mut page: impl FnMut(u64, &[u8]),
    ) -> Result<(), ReadError> {
        let (mut packed, mut raw) = (Vec::new(), Vec::new());
        for chunk in chunks {
            let (_, numbers) = pages::read_pages_head(&self.file.head(chunk)?)
                .map_err(|what| self.file.corrupt(chunk.offset, what))?;
            self.file.body(chunk, &mut packed, &mut raw)?;
            for (number, content) in numbers.into_iter().zip(raw.chunks_exact(PAGE)) {
                page(number, content);
            }
        }
        Ok(())
    }

    /// The pools as they were when the trace began. They are read once; copies share their pages.
    pub fn initial_images(&self) -> Result<Vec<PoolImage>, ReadError> {
        if let Some(images) = self.images.get() {
            return Ok(images.clone());
        }
        let mut images = Vec::new();
        for (number, pool) in self.tables.pools.iter().enumerate() {
            let mut image = PoolImage::new(pool.info.len);
            self.initial_pages(PoolId(number as u32), |page, bytes| {
                // Page numbers were checked to lie inside the address range of files when the trace was opened.
                image.write(page * PAGE as u64, bytes).ok();
            })?;
            images.push(image);
        }
        Ok(self.images.get_or_init(|| images).clone())
    }

    /// The files that the target changed, as they were before. Read once; copies share their pages.
    pub fn initial_files(&self) -> Result<FileTree, ReadError> {
        if let Some(tree) = self.tree.get() {
            return Ok(tree.clone());
        }
        let mut images: FxHashMap<FileId, PoolImage> = FxHashMap::default();
        for info in &self.tables.files {
            let FileKind::Regular { file, len, pool: None } = info.kind else { continue };
            let mut image = PoolImage::new(len);
            let chunks = self.file_pages.iter().filter(|(of, _)| *of == file).map(|(_, chunk)| chunk);
            self.pages_of(chunks, |page, bytes| {
                // Page numbers were checked to lie inside the address range of files when the trace was opened.
                image.write(page * PAGE as u64, bytes).ok();
            })?;
            images.insert(file, image);
        }
        let tree = FileTree::initial(&self.tables.files, |file| images.get(&file).cloned().unwrap_or_default());
        Ok(self.tree.get_or_init(|| tree).clone())
    }

    pub(crate) fn unexplained(&self) -> &Unexplained {
        &self.unexplained
    }

    /// What was under the paths of the trace at the end; empty where the trace does not tell.
    pub fn final_names(&self) -> &[(String, FoundName)] {
        &self.final_names
    }

    /// Final content of a pool; none where the trace does not hold it.
    pub(crate) fn final_pages(&self, pool: PoolId) -> Result<Option<FinalPages>, ReadError> {
        let mut all: Option<FinalPages> = None;
        for (_, chunk) in self.finals.iter().filter(|(of, _)| *of == pool) {
            let part =
                pages::read_final(&self.file.head(chunk)?).map_err(|what| self.file.corrupt(chunk.offset, what))?;
            match &mut all {
                None => all = Some(part),
                Some(all) => all.pages.extend(part.pages),
            }
        }
        Ok(all)
    }
}
