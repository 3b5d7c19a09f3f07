//! Writing a trace while the recording runs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use crate::block::pending::Pending;
use crate::content::PoolContent;
use crate::definitions as defs;
use crate::error::WriteError;
use crate::event::{CodeAddr, ContextId, Event, EventId, FileId, ModuleId, PathId, PoolId, WatchId};
use crate::file_tree::FoundName;
use crate::format::Tag;
use crate::numbered::Numbered;
use crate::pages;
use crate::shape::{Shape, ShapeTable};
use crate::sink::{Job, Sink};
use crate::tables::{CodeModule, ContextNode, FileInfo, FileKind, Meta, Outcome, PoolInfo, Severity, Summary};

/// Definitions that wait for the end of the block go out early beyond this size.
const DEFINITION_BYTES: usize = 1 << 20;

/// Writes one trace file. Only [`TraceWriter::finish`] makes it complete; dropped without it, what was pushed so far
/// is in the file but readers say that it is incomplete.
#[derive(Debug)]
pub struct TraceWriter {
    path: PathBuf,
    sink: Sink,
    block: Pending,
    next_event: u64,
    /// Records for the next `DEFS` chunk, and the shapes among them.
    definitions: Vec<u8>,
    new_shapes: Vec<Shape>,
    shapes: ShapeTable,
    modules: FxHashMap<CodeModule, ModuleId>,
    contexts: Numbered<ContextNode>,
    watches: FxHashMap<String, WatchId>,
    instructions: BTreeSet<String>,
    pools: Vec<PoolInfo>,
    paths: FxHashMap<String, PathId>,
    next_file: u32,
    finished: bool,
}

impl TraceWriter {
    /// Starts the file, replacing what was there.
    pub fn create(path: &Path, meta: Meta) -> Result<TraceWriter, WriteError> {
        let sink = File::create(path).and_then(Sink::start).map_err(|error| WriteError::io(path, error))?;
        let mut writer = TraceWriter {
            path: path.to_owned(),
            sink,
            block: Pending::default(),
            next_event: 0,
            definitions: Vec::new(),
            new_shapes: Vec::new(),
            shapes: ShapeTable::default(),
            modules: FxHashMap::default(),
            contexts: Numbered::default(),
            watches: FxHashMap::default(),
            instructions: BTreeSet::new(),
            pools: Vec::new(),
            paths: FxHashMap::default(),
            next_file: 0,
            finished: false,
        };
        let mut head = Vec::new();
        defs::put_meta(&mut head, &meta);
        writer.send(Job::Chunk { tag: Tag::Meta, head, body: Vec::new() })?;
        writer.module(CodeModule::none());
        writer.contexts.add(ContextNode::default());
        Ok(writer)
    }

    /// The number of a module; equal modules have one number. Module 0 is always "no code".
    pub fn module(&mut self, module: CodeModule) -> ModuleId {
        if let Some(&id) = self.modules.get(&module) {
            return id;
        }
        let id = ModuleId(self.modules.len() as u32);
        defs::put_module(&mut self.definitions, &module);
        self.modules.insert(module, id);
        id
    }

    /// The number of the call path that goes from `parent` to a call that returns to `return_to`. Context 0 is the
    /// empty path.
    ///
    /// # Panics
    /// If `parent` or the module of `return_to` is not of this trace.
    pub fn context(&mut self, parent: ContextId, return_to: CodeAddr, partial: bool) -> ContextId {
        assert!((parent.0 as usize) < self.contexts.len(), "{parent:?} is not in the trace");
        assert!((return_to.module.0 as usize) < self.modules.len(), "{:?} is not in the trace", return_to.module);
        let node = ContextNode { parent, return_to, partial };
        let number = self.contexts.find(&node).unwrap_or_else(|| {
            defs::put_context(&mut self.definitions, &node);
            self.contexts.add(node)
        });
        ContextId(number)
    }

    /// The number of a watched function.
    pub fn watch(&mut self, symbol: &str) -> WatchId {
        if let Some(&id) = self.watches.get(symbol) {
            return id;
        }
        let id = WatchId(self.watches.len() as u32);
        defs::put_watch(&mut self.definitions, symbol);
        self.watches.insert(symbol.to_owned(), id);
        id
    }

    /// Adds a pool with its present content, before its first event.
    pub fn pool(&mut self, info: PoolInfo, initial: &mut dyn PoolContent) -> Result<PoolId, WriteError> {
        let id = PoolId(self.pools.len() as u32);
        let mut head = Vec::new();
        pages::put_pool(&mut head, &info);
        self.send(Job::Chunk { tag: Tag::Pool, head, body: Vec::new() })?;
        let failed = |source| WriteError::Pool { pool: info.path.clone(), source };
        pages::store_initial(id, initial, failed, |head, body| {
            let job = Job::Chunk { tag: Tag::Pages, head, body };
            self.sink.send(job).map_err(|error| WriteError::io(&self.path, error))
        })?;
        self.pools.push(info);
        Ok(id)
    }

    /// The number of a path; equal paths have one number.
    pub fn path(&mut self, path: &str) -> PathId {
        if let Some(&id) = self.paths.get(path) {
            return id;
        }
        let id = PathId(self.paths.len() as u32);
        defs::put_path(&mut self.definitions, path);
        self.paths.insert(path.to_owned(), id);
        id
    }

    /// Every path so far.
    pub fn paths(&self) -> Vec<String> {
        let mut paths: Vec<_> = self.paths.iter().map(|(path, id)| (*id, path.clone())).collect();
        paths.sort_unstable();
        paths.into_iter().map(|(_, path)| path).collect()
    }

    /// The number of the next file that appears.
    pub fn new_file(&mut self) -> FileId {
        self.next_file += 1;
        FileId(self.next_file - 1)
    }

    /// Adds what was behind a name before its first change: `content` is that of a regular file that is no pool.
    pub fn file(&mut self, info: &FileInfo, content: Option<&mut dyn PoolContent>) -> Result<(), WriteError> {
        self.path(&info.path);
        let mut head = Vec::new();
        pages::put_file(&mut head, info);
        self.send(Job::Chunk { tag: Tag::File, head, body: Vec::new() })?;
        if let (FileKind::Regular { file, pool: None, .. }, Some(content)) = (&info.kind, content) {
            let failed = |source| WriteError::Pool { pool: info.path.clone(), source };
            pages::store_initial(PoolId(file.0), content, failed, |head, body| {
                let job = Job::Chunk { tag: Tag::FilePages, head, body };
                self.sink.send(job).map_err(|error| WriteError::io(&self.path, error))
            })?;
        }
        Ok(())
    }

    /// What is under the paths of the trace at the end: for `verify`.
    pub fn final_names(&mut self, names: &[(String, FoundName)]) -> Result<(), WriteError> {
        self.send_block()?;
        for some in names.chunks(1024) {
            let mut head = Vec::new();
            some.iter().for_each(|(path, found)| pages::put_found(&mut head, path, found));
            self.send(Job::Chunk { tag: Tag::FinalNames, head, body: Vec::new() })?;
        }
        Ok(())
    }

    /// Adds the next event.
    pub fn push(&mut self, event: &Event<'_>) -> Result<EventId, WriteError> {
        let (words, heap) = (self.block.words.len(), self.block.heap.len());
        let shape = Shape::split(event, &mut self.block.words, &mut self.block.heap)
            .and_then(|shape| self.shape_number(shape))
            .inspect_err(|_| {
                self.block.words.truncate(words);
                self.block.heap.truncate(heap);
            });
        self.block.add(event, shape?);
        let id = EventId(self.next_event);
        self.next_event += 1;
        if self.block.is_full() {
            self.send_block()?;
        } else if self.definitions.len() > DEFINITION_BYTES {
            self.send_definitions()?;
        }
        Ok(id)
    }

    #[inline]
    fn shape_number(&mut self, shape: Shape) -> Result<u32, WriteError> {
        if let Some(number) = self.shapes.find(&shape) {
            return Ok(number);
        }
        let defined = |number: u32, table: usize| (number as usize) < table;
        if !defined(shape.context.0, self.contexts.len()) || !defined(shape.pc.module.0, self.modules.len()) {
            return Err(WriteError::BadEvent("its context or module is not in the trace"));
        }
        if shape.code.has_pool() && !defined(shape.subject, self.pools.len()) {
            return Err(WriteError::BadEvent("its pool is not in the trace"));
        }
        if shape.code.has_watch() && !defined(shape.subject, self.watches.len()) {
            return Err(WriteError::BadEvent("its watched function is not in the trace"));
        }
        defs::put_shape(&mut self.definitions, &shape);
        self.new_shapes.push(shape);
        Ok(self.shapes.add(shape))
    }

    /// A message that belongs to the recording.
    pub fn note(&mut self, severity: Severity, text: &str) {
        defs::put_note(&mut self.definitions, severity, text);
    }

    /// A kind of PM instruction was met.
    pub fn instruction_seen(&mut self, name: &str) {
        if !self.instructions.contains(name) {
            self.instructions.insert(name.to_owned());
            defs::put_instruction(&mut self.definitions, name);
        }
    }

    /// Number of events so far: the number of the next one.
    pub fn events(&self) -> EventId {
        EventId(self.next_event)
    }

    /// Adds what `verify` compares with, and makes the trace complete. Pools that are not in `finals` cannot be
    /// verified.
    pub fn finish(
        mut self,
        finals: &mut [(PoolId, &mut dyn PoolContent)],
        outcome: Outcome,
    ) -> Result<Summary, WriteError> {
        self.finished = true;
        self.send_block()?;
        for (pool, content) in finals {
            let path = &self.pools.get(pool.0 as usize).ok_or(WriteError::BadEvent("unknown pool at the end"))?.path;
            let failed = |source| WriteError::Pool { pool: path.clone(), source };
            pages::store_final(*pool, *content, failed, |head| {
                let job = Job::Chunk { tag: Tag::Final, head, body: Vec::new() };
                self.sink.send(job).map_err(|error| WriteError::io(&self.path, error))
            })?;
        }
        let mut head = self.next_event.to_le_bytes().to_vec();
        defs::put_outcome(&mut head, outcome);
        self.send(Job::Chunk { tag: Tag::End, head, body: Vec::new() })?;
        let bytes = self.sink.close().map_err(|error| WriteError::io(&self.path, error))?;
        Ok(Summary { events: EventId(self.next_event), pools: self.pools.len() as u32, bytes })
    }

    fn send_block(&mut self) -> Result<(), WriteError> {
        self.send_definitions()?;
        if self.block.shapes.is_empty() {
            return Ok(());
        }
        let mut next = self.sink.spare_block();
        next.clear(self.next_event);
        let full = std::mem::replace(&mut self.block, next);
        self.send(Job::Block(full))
    }

    fn send_definitions(&mut self) -> Result<(), WriteError> {
        if self.definitions.is_empty() {
            return Ok(());
        }
        let (records, shapes) = (std::mem::take(&mut self.definitions), std::mem::take(&mut self.new_shapes));
        self.send(Job::Definitions { records, shapes })
    }

    fn send(&mut self, job: Job) -> Result<(), WriteError> {
        self.sink.send(job).map_err(|error: io::Error| WriteError::io(&self.path, error))
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Best effort: the recording has failed already, and says so elsewhere.
            self.send_block().and_then(|()| self.sink.close().map_err(|error| WriteError::io(&self.path, error))).ok();
        }
    }
}
