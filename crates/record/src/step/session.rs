//! The recording under way: the trace and what belongs to all tasks; and the tasks themselves.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use trace::TraceWriter;
use trace::event::{CodeAddr, ContextId, Event, EventKind, ProcessId, StoreKind, ThreadId};

use super::code::Modules;
use super::error::StepError;
use super::flow::Flow;
use super::kernel::SystemCall;
use super::pools::{Pools, SharedFile};
use super::ptrace::{self, Tid};
use super::shadow::ShadowStack;
use super::space::{self, Piece, Space};
use super::world::World;
use crate::file_book::{FileBook, FileKey};
use crate::recorder::RecordOptions;

/// What a task is doing.
#[derive(Debug)]
pub enum State {
    /// Stopped, before its next instruction.
    Ready,
    /// Inside a system call.
    InCall(Box<SystemCall>),
    /// On its way into a signal handler; the stack pointer before.
    Entering { rsp: u64 },
    /// Ending; only its last report is awaited.
    Dying,
}

/// A thread of the target.
#[derive(Debug)]
pub struct Task {
    pub tid: Tid,
    pub thread: ThreadId,
    pub process: ProcessId,
    pub space: Rc<RefCell<Space>>,
    pub shadow: ShadowStack,
    /// It issued a flush or a non-temporal PM store since its last fence (rule 5).
    pub must_fence: bool,
    pub state: State,
    /// The instruction before the current one.
    pub last_pc: u64,
}

/// Everything that the tasks share.
#[derive(Debug)]
pub struct Session {
    pub trace: TraceWriter,
    pub options: RecordOptions,
    pub pools: Pools,
    pub book: FileBook,
    /// The files behind the standard streams that the target is given.
    pub streams: Vec<FileKey>,
    pub modules: Modules,
    pub world: World,
    pub next_thread: u32,
    pub next_process: u32,
    pub flow: Option<Flow>,
}

impl Session {
    pub fn new(mut trace: TraceWriter, options: RecordOptions) -> Session {
        let mut modules = Modules::default();
        modules.watch(&mut trace, &options.watch);
        let pools = Pools::new(options.pm.clone());
        let flow = options.flow.clone().map(Flow::new);
        let stream = |fd: i32| fs::metadata(format!("/proc/self/fd/{fd}")).ok();
        let key = |found: fs::Metadata| FileKey { device: found.dev(), inode: found.ino() };
        let streams = (0..3).filter_map(stream).map(key).collect();
        let book = FileBook::default();
        Session {
            trace,
            options,
            pools,
            book,
            streams,
            modules,
            world: World::default(),
            next_thread: 0,
            next_process: 0,
            flow,
        }
    }

    /// Makes a file a pool, unless it is one.
    pub fn make_pool(&mut self, thread: ThreadId, file: &SharedFile) -> Result<(), StepError> {
        let pool = self.pools.add(&mut self.trace, file)?;
        let key = FileKey { device: file.key.device, inode: file.key.inode };
        let change = self.book.becomes_pool(&mut self.trace, key, &file.path, pool)?;
        change.map_or(Ok(()), |change| self.emit_without_place(thread, EventKind::File(change.event())))
    }

    pub fn new_thread(&mut self) -> ThreadId {
        self.next_thread += 1;
        ThreadId(self.next_thread - 1)
    }

    pub fn new_process(&mut self) -> ProcessId {
        self.next_process += 1;
        ProcessId(self.next_process - 1)
    }

    /// Writes an event of `task` at the instruction `pc`.
    pub fn emit(&mut self, task: &mut Task, pc: u64, kind: EventKind<'_>) -> Result<(), StepError> {
        if let Some(flow) = &self.flow {
            flow.note(task.thread, task.process, &kind);
        }
        let context = self.context(task);
        let pc = task.space.borrow_mut().code.locate(&mut self.modules, &mut self.trace, task.tid, pc);
        self.trace.push(&Event { thread: task.thread, context, pc, kind })?;
        Ok(())
    }

    /// Writes an event that no instruction stands for.
    pub fn emit_without_place(&mut self, thread: ThreadId, kind: EventKind<'_>) -> Result<(), StepError> {
        self.trace.push(&Event { thread, context: ContextId(0), pc: CodeAddr::default(), kind })?;
        Ok(())
    }

    /// The current call path of the task.
    fn context(&mut self, task: &mut Task) -> ContextId {
        let mut parent = ContextId(0);
        for frame in task.shadow.path() {
            parent = *frame.context.get_or_insert_with(|| {
                let code = &mut task.space.borrow_mut().code;
                let return_to = code.locate(&mut self.modules, &mut self.trace, task.tid, frame.return_to);
                self.trace.context(parent, return_to, false)
            });
        }
        parent
    }

    /// The parts of a range of the task's memory that are PM.
    pub fn pieces(&self, task: &Task, address: u64, len: u64) -> Vec<Piece> {
        let space = task.space.borrow();
        if space.has_mappings() { space.pieces(&self.pools, address, len) } else { Vec::new() }
    }

    /// What is now at a piece.
    pub fn content(&self, task: &Task, piece: Piece) -> Result<Vec<u8>, StepError> {
        let mut bytes = vec![0; piece.len as usize];
        ptrace::read(task.tid, piece.address, &mut bytes)?;
        Ok(bytes)
    }

    /// A store of the whole piece that has just happened.
    pub fn emit_store(&mut self, task: &mut Task, pc: u64, kind: StoreKind, piece: Piece) -> Result<(), StepError> {
        let bytes = self.content(task, piece)?;
        self.emit(task, pc, EventKind::Store { place: piece.place, kind, bytes: &bytes })?;
        if kind != StoreKind::Plain {
            task.must_fence = true;
        }
        Ok(())
    }

    /// The kernel wrote `len` bytes to the task's memory at `address`.
    pub fn emit_kernel_write(&mut self, task: &mut Task, pc: u64, address: u64, len: u64) -> Result<(), StepError> {
        if let Some(flow) = &self.flow {
            flow.kernel_wrote(task.thread, address, len);
        }
        for piece in self.pieces(task, address, len).into_iter().flat_map(space::cut) {
            let bytes = self.content(task, piece)?;
            self.emit(task, pc, EventKind::KernelWrite { place: piece.place, bytes: &bytes })?;
        }
        Ok(())
    }
}
