//! The flow of a run: which blocks of code each thread executed, and the words from which all addresses that
//! they accessed follow ([`isa::flow`]). Far too much to be kept, so it is not part of the trace: whoever wants it gives a
//! [`FlowSink`] to the recorder and takes it while the target runs.
//!
//! Rules that every recorder keeps:
//! 1. A block is defined before it is executed. It is a run of instructions without a branch but at its end; its bytes are
//!    whole instructions. One pc may get several blocks: cut differently, or with other bytes after code changed.
//! 2. [`FlowSink::executed`] means that every instruction of the block ran; `words` are those of its
//!    [`Layout`](isa::flow::Layout). If it was left early (a fault, a signal, an instruction that must be translated anew), there is
//!    a [`FlowSink::part`] instead, and the program goes on with another block: each executed instruction is told once.
//!    A repeated string instruction that faults half-way is not told for what it did until then.
//! 3. Calls about one thread are in the order of its execution. `operation_*`, `mapped`, `unmapped`, `kernel_wrote` and the
//!    births of threads and processes come where they happened in it.
//! 4. Between threads: what a thread did before it stored to PM, executed a locked instruction or entered the kernel
//!    comes before what other threads did after they had seen the effect. Plain stores to ordinary memory that another thread
//!    reads without any of these may come late, and a thread's loads may come after stores that followed them.
//! 5. What the kernel wrote is told after the system call, as whole ranges; also fresh memory (`mmap`, `brk`) and the frames of
//!    signal handlers. Calls that write through pointers inside of other structures (`ioctl` and such) are not known.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trace::event::{CodeAddr, Place, ProcessId, ThreadId};

/// A block, by the order of definition over all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BlockId(pub u32);

/// Instructions `from..to` of a block, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub from: usize,
    pub to: usize,
}

/// The file that is the input of a run in values mode, by whatever path or descriptor it is read. Inode 0: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct InputFile {
    pub device: u64,
    pub inode: u64,
}

/// Where input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InputSource {
    /// The input file, standard input or not.
    File,
    /// The n-th argument; 0 is the program's name.
    Argument(u32),
}

/// Takes the flow of a run; see the module's rules. `process` and `thread` are those of the trace.
#[expect(unused_variables, reason = "the names document the arguments of calls that a sink may ignore")]
pub trait FlowSink: Send {
    /// A block of this process and of those that it forks. `pc` is its address in the run, `code` the same in its module,
    /// `bytes` its instructions.
    fn define(&mut self, block: BlockId, process: ProcessId, pc: u64, code: CodeAddr, bytes: &[u8]);

    /// All instructions of the block ran.
    fn executed(&mut self, thread: ThreadId, block: BlockId, words: &[u64]);

    /// The first `part.to` instructions of the block ran, but those before `part.from` were told already; `words` are those of the
    /// block's layout up to `part.to`.
    fn part(&mut self, thread: ThreadId, block: BlockId, part: Part, words: &[u64]);

    /// The kernel wrote `len` bytes at `address`, or they are fresh.
    fn kernel_wrote(&mut self, thread: ThreadId, address: u64, len: u64) {}

    /// A pool is mapped: `address` shows `place`.
    fn mapped(&mut self, process: ProcessId, address: u64, len: u64, place: Place) {}
    fn unmapped(&mut self, process: ProcessId, address: u64, len: u64) {}

    /// `len` bytes at `address` show the file at `path` from `offset` on; there is code in them. Code that was not executed can be read
    /// there. The `probe` backend only.
    fn code_mapped(&mut self, process: ProcessId, address: u64, len: u64, path: &str, offset: u64) {}

    /// A thread of this process begins, made by `parent`.
    fn thread_started(&mut self, thread: ThreadId, process: ProcessId, parent: Option<ThreadId>) {}

    /// A process begins with its first thread: as a copy of its parent, made by the thread `forked_by`, or (`None`) the first of all.
    /// Its memory, registers and blocks are its parent's. `shares_memory`: until it executes another program (`vfork`).
    fn process_started(
        &mut self,
        process: ProcessId,
        thread: ThreadId,
        parent: Option<ProcessId>,
        shares_memory: bool,
    ) {
    }

    /// The process now runs another program: nothing of its memory, its pools and its blocks is left.
    fn process_exec(&mut self, process: ProcessId, thread: ThreadId) {}

    /// Values mode: `len` bytes of the input, from byte `from` of `source` on, are at `address` now.
    fn input(&mut self, thread: ThreadId, source: InputSource, from: u64, address: u64, len: u64) {}

    /// Values mode: `content`, which is at `address`, goes into a socket or pipe (the beginning of it, if it is long). Told before anybody
    /// can receive it.
    fn sent(&mut self, thread: ThreadId, address: u64, content: &[u8]) {}

    /// Values mode: `content` came out of a socket or pipe and is at `address` now.
    fn received(&mut self, thread: ThreadId, address: u64, content: &[u8]) {}

    /// Values mode: the kernel takes `len` bytes at `address` as a name, or writes them to a file; told before it does.
    fn taken(&mut self, thread: ThreadId, address: u64, len: u64) {}

    fn operation_begin(&mut self, thread: ThreadId, index: u64) {}
    fn operation_end(&mut self, thread: ThreadId, index: u64) {}

    /// The run is over.
    fn finished(&mut self) {}
}

/// A sink that is given to a recorder and taken back after the run.
#[derive(Clone)]
pub struct FlowHandle(Arc<Mutex<dyn FlowSink>>);

impl FlowHandle {
    /// Keep a clone of `sink` to look at it after the run.
    pub fn new<S: FlowSink + 'static>(sink: Arc<Mutex<S>>) -> FlowHandle {
        FlowHandle(sink)
    }

    /// The sink, for the time of a run.
    pub fn take(&self) -> MutexGuard<'_, dyn FlowSink + 'static> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FlowHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FlowHandle")
    }
}
