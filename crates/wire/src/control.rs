//! The control area: one memfd, mapped by the host and by every process of the recording.
//!
//! Layout of the memfd: `Control` at 0 (padded to [`CONTROL_BYTES`]), then the ring of [`RING_BYTES`], then, for recovery
//! runs, the notes ([`NOTES_BYTES`](crate::recover::NOTES_BYTES)), and with coverage its maps ([`COVER_BYTES`](crate::cover::COVER_BYTES)).
//! Every process maps the ring twice in a row, so that a record never wraps.

use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::recover::Recovery;

/// Bumped with every change of layout; probe and host refuse to work together if it differs.
pub const WIRE_VERSION: u32 = 8;
pub const CONTROL_BYTES: usize = 1 << 20;
/// Small enough to stay in the second-level cache: a larger ring is slower.
pub const RING_BYTES: usize = 1 << 20;

/// Longest payload of one record (see `record`).
pub const MAX_PAYLOAD: usize = 4096;

/// The probe is started as `execveat(P, "", argv, envp, AT_EMPTY_PATH)`. The kernel then sets `AT_EXECFN` to
/// `/dev/fd/P`; the other two descriptors sit right below it. They are not visible to the target.
pub const CONTROL_FD_BELOW: i32 = 1;
/// A `SOCK_SEQPACKET` socket on which the probe passes file descriptors of pools to the host.
pub const SOCKET_FD_BELOW: i32 = 2;

/// Bits of [`Control::options`].
pub mod option {
    /// Record loads from PM as well.
    pub const LOADS: u32 = 1 << 0;
    /// Let real time through (else a virtual clock).
    pub const REAL_TIME: u32 = 1 << 1;
    /// Let real randomness through (`getrandom`, `/dev/urandom`, `AT_RANDOM`, `rdrand`).
    pub const REAL_RANDOM: u32 = 1 << 2;
    /// No `--pm` given: every writable shared mapping of a regular file or DAX device is a pool.
    pub const PM_DEFAULT: u32 = 1 << 3;
    /// Serve standard input one line per `read`, and mark operation boundaries there. Standard output looks like a terminal to the C library, so
    /// that answers are written line by line.
    pub const OPERATIONS_STDIN: u32 = 1 << 4;
    /// Let the time-stamp counter through.
    pub const REAL_TSC: u32 = 1 << 5;
    /// A recovery run: no events, but what is read of the pools (see `recover`). Comes with `LOADS`.
    pub const RECOVER: u32 = 1 << 6;
    /// Record what happens to files that are no pools, and to names.
    pub const FILES: u32 = 1 << 7;
    /// Record which blocks ran and which addresses they accessed (see `record::flow`). Not together with `LOADS`.
    pub const FLOW: u32 = 1 << 16;
    /// Count what ran (see `cover`). Comes with `RECOVER`, without `LOADS`.
    pub const COVER: u32 = 1 << 17;
    /// With `FLOW`: the operands of what computes as well, and where the input goes (`FLOW_INPUT`). The input is the file with
    /// [`Control::input_device`](super::Control::input_device) and its inode, and the arguments.
    pub const VALUES: u32 = 1 << 18;
}

pub const MAX_GLOBS: usize = 64;
pub const MAX_WATCHES: usize = 256;
pub const MAX_WATCH_SITES: usize = 1024;
pub const TEXT_BYTES: usize = 64 << 10;
pub const MAX_POOLS: usize = 1024;
pub const EXEC_SLOTS: usize = 64;
pub const EXEC_BYTES: usize = 8 << 10;

/// Files whose writes are recorded that can be remembered.
pub const FILE_SLOTS: usize = 2048;

/// What children of fork had to find out for themselves, for their parent to know before the next fork.
pub const FORK_HINTS: usize = 2048;

/// A string inside [`Control::text`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TextRef {
    pub start: u32,
    pub len: u32,
}

/// A request for a new image, written by the process (or by the host, for the first one) right before `execveat`
/// and taken by the probe that comes up under the same pid.
#[repr(C)]
#[derive(Debug)]
pub struct ExecSlot {
    /// Pid (as the process itself sees it; 0: the first process, which does not know it yet; -1: free).
    pub pid: AtomicU32,
    /// Process number of the recording, kept across exec.
    pub process: u32,
    /// Thread number of the thread that goes on.
    pub thread: u32,
    pub path_len: u32,
    /// Path of the executable or script as given to exec; then, if the file must be opened by another one, a zero
    /// byte and that path.
    pub path: [u8; EXEC_BYTES - 16],
}

/// An address that the host resolved for a watched symbol. `pid` as the process itself sees it.
#[repr(C)]
#[derive(Debug)]
pub struct WatchSite {
    pub pid: u32,
    pub watch: u32,
    pub address: u64,
}

/// The file that a pool number stands for.
#[repr(C)]
#[derive(Debug)]
pub struct PoolFile {
    pub device: AtomicU64,
    pub inode: AtomicU64,
    /// Length at the last look: a change of it is an event.
    pub len: AtomicU64,
}

/// Operations of all processes: whoever reads the next line begins the next one.
#[repr(C)]
#[derive(Debug)]
pub struct Operations {
    /// Stands for the file behind the first process's standard input, by whatever descriptor it is read; 0: there is none.
    pub input: AtomicU64,
    /// And for the one behind its standard output.
    pub output: AtomicU64,
    pub begun: AtomicU64,
    /// 1: the last one has not ended yet.
    pub open: AtomicU32,
    /// 1: the last read took only a part of a line; what follows belongs to the same operation.
    pub inside: AtomicU32,
}

#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Control {
    pub version: u32,
    pub options: u32,
    /// Size of each code cache arena in bytes; 0 = default. Small values exercise the "cache full" path.
    pub cache_bytes: u64,
    /// Bytes ever written to / consumed from the ring. Position in the ring is the value modulo its size.
    pub head: AtomicU64,
    _pad0: [u64; 6],
    pub tail: AtomicU64,
    _pad1: [u64; 7],
    /// Rung by the probe when the host should look at once; the host sleeps on it (futex).
    pub doorbell: AtomicU32,
    /// 1 while the host sleeps (only then must the probe wake it).
    pub host_sleeps: AtomicU32,
    /// 1 while a producer sleeps on `tail_moved`.
    pub probe_sleeps: AtomicU32,
    pub tail_moved: AtomicU32,
    /// Answers to `record::kind::PLEASE`: the host stores the request's number here and wakes (futex).
    pub answered: AtomicU32,
    /// Next request number.
    pub request: AtomicU32,
    _pad2: [u32; 10],
    /// The order lock: owner's kernel tid, 0 = free. Held around a PM store and its record once there is
    /// more than one task.
    pub order_lock: AtomicU32,
    /// Set for good when a second task (thread or process) starts.
    pub many_tasks: AtomicU32,
    pub next_thread: AtomicU32,
    pub next_process: AtomicU32,
    /// Number of live processes of the recording, for the host to know when all is over.
    pub live_processes: AtomicU32,
    /// Set by the host when it cannot go on (for example: disk full). Probes then end their process.
    pub stop: AtomicU32,
    _pad3: [u32; 10],
    /// Virtual nanoseconds since the virtual epoch.
    pub virtual_ns: AtomicU64,
    /// Queries of a clock since the last wait.
    pub virtual_queries: AtomicU64,
    /// Real nanoseconds of long waits that have not moved the clock yet.
    pub virtual_waited: AtomicU64,
    pub virtual_tsc: AtomicU64,
    /// State of the derandomised random source.
    pub random_state: AtomicU64,
    pub glob_count: u32,
    pub watch_count: u32,
    pub globs: [TextRef; MAX_GLOBS],
    /// Symbols to watch.
    pub watches: [TextRef; MAX_WATCHES],
    /// Numbers the program images of the recording, for `fork_hints`.
    pub next_image: AtomicU32,
    pub fork_hint_count: AtomicU32,
    /// Instrumented << 62 | image << 48 | rule << 47 | pc; 0: not written yet.
    pub fork_hints: [AtomicU64; FORK_HINTS],
    pub watch_site_count: AtomicU32,
    pub watch_sites: [WatchSite; MAX_WATCH_SITES],
    /// How much of `text` is used; the host's own.
    pub text_used: u32,
    pub text: [u8; TEXT_BYTES],
    pub exec_slots: [ExecSlot; EXEC_SLOTS],
    /// Pools of all processes, by number. Written by the probes under the order lock; an entry never changes.
    pub pool_count: AtomicU32,
    pub pools: [PoolFile; MAX_POOLS],
    pub operations: Operations,
    /// Device and inode of the files behind the first process's standard streams: what goes there is not of the target's files.
    pub streams: [[u64; 2]; 3],
    /// Files that are no pools and of which the host knows, by hash; 0: free.
    pub files: [AtomicU64; FILE_SLOTS],
    pub recovery: Recovery,
    /// With `option::VALUES`: the file that is the input.
    pub input_device: u64,
    pub input_inode: u64,
}

const _: () = assert!(core::mem::size_of::<Control>() <= CONTROL_BYTES);
