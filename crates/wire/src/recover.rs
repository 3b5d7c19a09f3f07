//! Recovery runs: what the host asks of a probe that serves as fork server, and what it is told.
//!
//! A probe with [`option::RECOVER`](crate::control::option::RECOVER) records no events. It runs the recovery command up
//! to its first use of a pool's path and then waits for the host, which puts a crash image into the private files that stand
//! for the pools and asks for a run. Each run is a fork; what it read of the pools before writing it, and what it
//! changed, is left in the notes.

use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64};

use crate::control::TextRef;

/// Bytes for notes, behind the ring in the memfd.
pub const NOTES_BYTES: usize = 16 << 20;
pub const MAX_NOTES: usize = NOTES_BYTES / 8;
/// Pools that a recovery can have.
pub const MAX_SUBSTITUTES: usize = 64;
/// Folders of the target's that private ones stand for.
pub const MAX_ROOTS: usize = 16;
/// Room for the description of a crash inside recovery.
pub const CRASH_BYTES: usize = 16 << 10;
/// Byte ranges of the operations that a run can be given.
pub const MAX_BYTE_RANGES: usize = 1024;
/// Operations of a run whose answers can be told apart.
pub const MAX_ANSWERS: usize = 1 << 16;

/// Directories that can be private to a run.
pub const MAX_PRIVATE: usize = 16;
/// Room for the paths that were changed outside of them.
pub const OUTSIDE_BYTES: usize = 4096;
/// Bytes of output that the engine holds back.
pub const HELD_BYTES: usize = 8192;

/// Pages that runs change and that a run copies to put itself back, at most.
pub const MAX_CHANGED_PAGES: usize = 8192;

/// Why a run ended its process instead of putting it back ([`Recovery::not_put_back`]).
pub mod not_put_back {
    /// It put it back, or was not to.
    pub const NONE: u32 = 0;
    /// It translated code: the server does so as well, and its next fork has it.
    pub const LEARNED: u32 = 1;
    /// It changed pages that none before it had changed: the next fork copies them first.
    pub const NEW_PAGES: u32 = 2;
    /// It made a system call whose effect is not known to be undone.
    pub const CALL: u32 = 3;
    /// It changed a mapping that was there when it began, or more mappings than are kept.
    pub const MAPPINGS: u32 = 4;
    /// There were several threads or processes.
    pub const TASKS: u32 = 5;
    /// It closed or changed a descriptor that was there when it began.
    pub const DESCRIPTOR: u32 = 6;
    /// Its process has used enough processor time: limits count per process.
    pub const OLD: u32 = 7;
    /// What it changed cannot be found out, or is too much.
    pub const PAGES: u32 = 8;
}

/// Values of [`Recovery::state`].
pub mod state {
    /// Not at the fork point yet.
    pub const STARTING: u32 = 0;
    /// At the fork point: every run will be a fork.
    pub const READY: u32 = 1;
    /// At the first use of a pool, but what got there cannot be forked (several threads or processes): it goes on itself
    /// when asked, and serves one run only.
    pub const ONCE: u32 = 2;
    pub const RUNNING: u32 = 3;
    pub const DONE: u32 = 4;
    /// In a reference run: at the boundary between two operations. Every run is a fork, until the process itself is to go on.
    pub const BOUNDARY: u32 = 5;
    /// A run has got to `stop_at`, and serves in place of the server: every run is a fork of it, until it is to leave.
    pub const STOPPED: u32 = 6;
}

/// Values of [`Recovery::go_on`].
pub mod go_on {
    /// The next run is a fork.
    pub const FORK: u32 = 0;
    /// The process itself goes on.
    pub const ITSELF: u32 = 1;
    /// The process ends; the server that it was forked from serves again.
    pub const LEAVE: u32 = 2;
}

/// Value of [`Recovery::stop_at`]: the run goes on to its end.
pub const NOWHERE: u64 = u64::MAX;

/// Values of [`Recovery::reference`].
pub mod reference {
    pub const NONE: u32 = 0;
    /// Forks end with their last answer.
    pub const ANSWERS: u32 = 1;
    /// Forks go on to their own end.
    pub const ENDS: u32 = 2;
}

/// Bits of [`Recovery::flags`].
pub mod flag {
    /// The run had several threads: what it read may depend on their timing.
    pub const THREADS: u32 = 1 << 0;
    /// Something was read in a way that the notes cannot tell.
    pub const INCOMPLETE: u32 = 1 << 1;
    /// A pool's length or place in the file system changed.
    pub const FILES_CHANGED: u32 = 1 << 2;
    /// There was no room for more notes.
    pub const FULL: u32 = 1 << 3;
    /// The run was ended: its wall-clock time was over.
    pub const HUNG: u32 = 1 << 4;
    /// The run was ended: it wrote too much.
    pub const OUTPUT: u32 = 1 << 5;
    /// A fork was refused: too many processes.
    pub const PROCESSES: u32 = 1 << 6;
    /// Processes were still there when the first one had ended; they were killed when they had nothing to do.
    pub const LEFT_RUNNING: u32 = 1 << 7;
    /// Memory was refused: the run has used what it may.
    pub const MEMORY: u32 = 1 << 8;
    /// Files or names beside the pools changed.
    pub const TREE_CHANGED: u32 = 1 << 9;
    /// A file outside of the private directories was changed, or opened for it.
    pub const OUTSIDE: u32 = 1 << 10;
}

/// What runs have done with a mapping, in [`Recovery::dense`].
pub mod dense {
    /// Most of its pages were used.
    pub const FILLED: u64 = 1;
    pub const SPARSE: u64 = 2;
}

/// A note: kind << 60 | pool << 48 | line.
pub mod note {
    /// The line was read before all the bytes read had been written.
    pub const READ: u64 = 1;
    /// The line was written.
    pub const DIRTY: u64 = 2;

    pub const fn pack(kind: u64, pool: u32, line: u64) -> u64 {
        kind << 60 | (pool as u64) << 48 | line
    }

    /// Kind, pool, line.
    pub const fn unpack(note: u64) -> (u64, u32, u64) {
        (note >> 60, (note >> 48 & 0xfff) as u32, note & ((1 << 48) - 1))
    }
}

/// A pool's path and the private file that stands for it. Pool numbers are places in the list.
#[repr(C)]
#[derive(Debug)]
pub struct Substitute {
    /// Absolute, without symbolic links.
    pub path: TextRef,
    pub private: TextRef,
    /// The file at `path`, if there is one: it must never be touched.
    pub device: u64,
    pub inode: u64,
    /// The same file as the run sees it, through a private mount; 0: there is none.
    pub inside_device: AtomicU64,
    pub inside_inode: AtomicU64,
}

/// Stands for a path inside of a root (FNV-1a).
pub const fn name_hash(path: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut at = 0;
    while at < path.len() {
        hash = (hash ^ path[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    hash
}

/// Bytes of the file behind standard input: whole lines, each an operation.
#[repr(C)]
#[derive(Debug)]
pub struct ByteRange {
    pub from: AtomicU64,
    pub to: AtomicU64,
}

#[repr(C)]
#[derive(Debug)]
pub struct Recovery {
    /// Number of the run that the host wants; the server sleeps while it is `done`.
    pub wanted: AtomicU32,
    pub state: AtomicU32,
    /// `wait` status of the run's first process.
    pub status: AtomicI32,
    pub flags: AtomicU32,
    /// Signal that killed another process of the run; 0: none.
    pub killed_by: AtomicI32,
    /// 1 while a run that is about to be killed is asked where it is (by `SIGSEGV`).
    pub asking: AtomicU32,
    /// How much of `crash` is used.
    pub crash_len: AtomicU32,
    pub note_count: AtomicU64,
    /// User and system time of the run's processes.
    pub cpu_us: AtomicU64,
    /// The most by which the heap of a run has grown.
    pub heap_grown: AtomicU64,
    /// Limits of a run; written by the host before it asks.
    pub wall_ms: AtomicU64,
    pub cpu_s: AtomicU64,
    /// Address space beyond what the process has at the fork point.
    pub memory: AtomicU64,
    pub output: AtomicU64,
    pub processes: AtomicU32,
    /// Of a run that is one of several in a row: how much later than at the fork point its clock begins, and what makes its random numbers
    /// others than those of the runs before it.
    pub later_ns: AtomicU64,
    pub salt: AtomicU64,
    /// Not 0: stop at every boundary between operations (`state::BOUNDARY`) instead of at the first use of a pool.
    pub reference: AtomicU32,
    /// With `wanted`: what the process shall do that serves ([`go_on`]).
    pub go_on: AtomicU32,
    /// The process that has stopped at `stop_at`, and serves; 0: none.
    pub stopped: AtomicU32,
    /// Where in its input, in bytes, the next run stops to be forked itself; or [`NOWHERE`].
    pub stop_at: AtomicU64,
    /// Not 0: the next run is over where its operations are, without what the program does then.
    pub ends_with_input: AtomicU32,
    /// Not 0: a run that can be undone puts its process back to where it was forked, and the next run needs no fork.
    pub in_place: AtomicU32,
    /// The process that has put itself back and waits for `resume` to change; 0: none.
    pub back: AtomicU32,
    /// How its last run ended, as `wait` tells it, and the processor time that it has used since its start.
    pub back_status: AtomicI32,
    pub back_cpu_us: AtomicU64,
    pub resume: AtomicU32,
    /// Why the last run did not put its process back ([`not_put_back`]), and a detail: the number of a system call.
    pub not_put_back: AtomicU32,
    pub not_put_back_detail: AtomicU64,
    /// Runs that were forked, and runs in a process that was put back.
    pub forked: AtomicU64,
    pub resumed: AtomicU64,
    /// Addresses of pages that runs change, in any order.
    pub changed_page_count: AtomicU32,
    pub changed_pages: [AtomicU64; MAX_CHANGED_PAGES],
    /// What a run reads from standard input, with `option::OPERATIONS_STDIN`: one line per read.
    pub byte_range_count: AtomicU32,
    pub byte_ranges: [ByteRange; MAX_BYTE_RANGES],
    /// The byte range that is being read, and how far into the file.
    pub byte_range: AtomicU32,
    pub offset: AtomicU64,
    /// How many reads of standard input came where an operation was over (the end of the input is one), and how long the
    /// standard output was at each.
    pub answer_count: AtomicU32,
    pub answers: [AtomicU32; MAX_ANSWERS],
    /// What a run has written to standard output and the kernel does not have yet.
    pub held_len: AtomicU32,
    pub held: [AtomicU8; HELD_BYTES],
    /// Directories in which a run may change files: nobody else sees it.
    pub private_count: u32,
    pub private: [TextRef; MAX_PRIVATE],
    /// Paths outside of them that runs have changed, or opened for it, each with a line break; never reset.
    pub outside_len: AtomicU32,
    pub outside: [u8; OUTSIDE_BYTES],
    pub substitute_count: u32,
    pub substitutes: [Substitute; MAX_SUBSTITUTES],
    /// Folders, absolute and without symbolic links, and the private ones that stand for them. Beside `private` there is a folder
    /// `private.names` with an empty file for each recorded name, named by its [`name_hash`].
    pub root_count: u32,
    pub roots: [Substitute; MAX_ROOTS],
    /// Lines `module+0xoffset`, innermost frame first: where a fatal signal struck.
    pub crash: [u8; CRASH_BYTES],
    /// Large anonymous mappings of runs: address | what is known of it ([`dense`]); 0: free.
    pub dense: [AtomicU64; 16],
}
