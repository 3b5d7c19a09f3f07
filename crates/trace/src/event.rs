//! What a recording consists of: the events that reach persistent memory, in one total order.
//!
//! This is the contract that every recorder fulfils and every analysis reads. Addresses do not occur in
//! it: data is at *(pool, offset)*, code is at *(module, address inside the module)*.
//!
//! The rules, numbered so that the conformance suite can cite them:
//!
//! 1. Events are in one total order over all threads and processes that agrees with the order in which
//!    memory saw the stores.
//! 2. A store that touches PM is one [`EventKind::Store`] with the bytes it wrote. Longer ones (string
//!    instructions, kernel writes) are cut at 4 KiB boundaries of the pool offset, in the direction of the copy.
//! 3. A masked store is one event per maximal run of enabled bytes, by ascending address; a scatter is one
//!    event per enabled element, in element order.
//! 4. A `lock`-prefixed instruction, or `xchg` with memory, on PM is one [`EventKind::Rmw`]: it is a fence and
//!    a store. Read-modify-writes without `lock` are plain stores of their result.
//! 5. A locked instruction on ordinary memory is a [`FenceKind::Locked`] fence, recorded only where the thread
//!    has issued a flush or a non-temporal PM store since its last fence: otherwise it orders nothing.
//! 6. `sfence` and `mfence` are always recorded; `lfence` never is (it orders no store).
//! 7. Flushes are always recorded, those of ordinary memory with [`FlushTarget::Volatile`].
//! 8. What the kernel writes into a mapped pool is [`EventKind::KernelWrite`]; what a program writes
//!    to the pool's file is [`EventKind::FileWrite`]. Both come after the data is there.
//! 9. Every event has a thread, the address of its instruction and a context: the call path, outermost
//!    frame first, that led to the function of that instruction (return addresses; the instruction's own
//!    address is not part of it). A path ends at a signal handler's frame.
//!
//! Rules 10 to 14, about files and their names, are in [`FileEvent`]'s module.

use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::file_event::FileEvent;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $int);
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

id!(/// Place of an event in the total order; the first is 0.
    EventId(u64));
id!(/// A pool: one file (device and inode) that was mapped as PM. Numbered by first appearance.
    PoolId(u32));
id!(/// A thread of any process of the recording. Numbered by start.
    ThreadId(u32));
id!(/// A process of the recording. Numbered by start; the first target process is 0.
    ProcessId(u32));
id!(/// An executable file or other code region (see `CodeModule`).
    ModuleId(u32));
id!(/// A call path. 0 is the empty path (no caller known).
    ContextId(u32));
id!(/// A file that the target changed, pool or not. Numbered by first appearance.
    FileId(u32));
id!(/// An absolute path, by its place in the trace's list.
    PathId(u32));
id!(/// A function named by `--watch`, by its place in the list.
    WatchId(u32));
id!(/// A byte's place in its pool file.
    PoolOffset(u64));
id!(/// A 64-byte cache line of a pool: offset / 64.
    LineNo(u64));

impl PoolOffset {
    /// The line that this byte lies in.
    pub fn line(self) -> LineNo {
        LineNo(self.0 / 64)
    }
}

/// The code address of an instruction: a module and the ELF virtual address inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct CodeAddr {
    pub module: ModuleId,
    pub addr: u64,
}

/// A byte of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    pub pool: PoolId,
    pub offset: PoolOffset,
}

/// How a store reaches PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreKind {
    /// Through the cache.
    Plain,
    /// `movnt*`, `maskmovdqu/q`, `movdiri`: bypasses the cache, pending until the thread's next fence.
    NonTemporal,
    /// `movdir64b`: as `NonTemporal`, and its 64 bytes are never torn.
    Direct64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlushKind {
    Clflush,
    Clflushopt,
    Clwb,
    /// A hint that guarantees nothing; recorded because people take it for a flush.
    Cldemote,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceKind {
    Sfence,
    Mfence,
    /// A locked instruction on ordinary memory (rule 5).
    Locked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlushTarget {
    Pool(Place),
    /// Ordinary memory: the address as the program saw it.
    Volatile(u64),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

/// What happened. Byte slices borrow from the reader's current block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind<'a> {
    Store {
        place: Place,
        kind: StoreKind,
        bytes: &'a [u8],
    },
    Rmw {
        place: Place,
        old: &'a [u8],
        new: &'a [u8],
    },
    Flush {
        kind: FlushKind,
        target: FlushTarget,
    },
    Fence {
        kind: FenceKind,
    },
    /// Only with loads switched on.
    Load {
        place: Place,
        len: u32,
    },
    /// `len` bytes of the pool from `place` are now visible to the thread's process. `address` is where.
    Map {
        place: Place,
        len: u64,
        address: u64,
    },
    Unmap {
        place: Place,
        len: u64,
        address: u64,
    },
    /// `msync(MS_SYNC)`.
    Msync {
        place: Place,
        len: u64,
    },
    Fsync {
        pool: PoolId,
        data_only: bool,
    },
    KernelWrite {
        place: Place,
        bytes: &'a [u8],
    },
    FileWrite {
        place: Place,
        bytes: &'a [u8],
    },
    /// The bytes of this range became zero (`fallocate` with punch-hole or zero-range).
    FileZero {
        place: Place,
        len: u64,
    },
    /// The pool's file has this length now (`ftruncate`, `fallocate`, a write past its end).
    Resize {
        pool: PoolId,
        len: u64,
    },
    ThreadStart,
    ThreadEnd,
    /// The first event of a process; `parent` is none for the first one.
    ProcessStart {
        process: ProcessId,
        parent: Option<ProcessId>,
    },
    ProcessExit {
        status: ExitStatus,
    },
    Exec {
        path: &'a str,
    },
    OperationBegin {
        index: u64,
    },
    OperationEnd {
        index: u64,
    },
    /// A change of a file that is no pool, or of any file's names (rules 10 to 14, [`FileEvent`]).
    File(FileEvent<'a>),
    /// Entry of a watched function with its first six integer arguments.
    Call {
        watch: WatchId,
        args: [u64; 6],
    },
    Return {
        watch: WatchId,
        value: u64,
    },
}

/// One event as a reader yields it and a writer takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    pub thread: ThreadId,
    pub context: ContextId,
    pub pc: CodeAddr,
    pub kind: EventKind<'a>,
}
