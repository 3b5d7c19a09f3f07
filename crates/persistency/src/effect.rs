//! What one event did to the lines: the answers that `lint` and the strategies take from each step.

use trace::event::{Place, PoolId};

use crate::line::{ByteMask, LineId};
use crate::pending::PendingStore;

/// One line's part of a store, as the line was just before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredLine {
    pub line: LineId,
    /// The bytes that the store wrote.
    pub written: ByteMask,
    /// Those of them that an earlier store, not yet guaranteed, had written: values that never were durable.
    pub overwritten: ByteMask,
    /// The line had pending stores before, and all of them that a flush reaches had been flushed by some thread
    /// without a fence since: this store races with that write-back.
    pub flush_in_flight: bool,
}

/// A store that left the pending lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledStore {
    pub line: LineId,
    pub store: PendingStore,
    pub(crate) at: usize,
}

/// What became of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlushVerdict {
    /// It asked for stores that this thread had not asked for yet (`clflush`: it guaranteed some).
    Useful,
    /// Nothing on the line is pending.
    Clean,
    /// This thread has flushed the same stores already and has not fenced since.
    AlreadyFlushed,
    /// Only non-temporal stores are pending on the line; they are not in the cache.
    OnlyNonTemporal,
    /// Not a line of a pool.
    Volatile,
    /// `cldemote`: guarantees nothing.
    Hint,
    /// The model has no use for flushes (eADR).
    NotNeeded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushEffect {
    /// None for ordinary memory.
    pub line: Option<LineId>,
    pub verdict: FlushVerdict,
    /// Stores on the line that the flush asked for and that its thread had not asked for before.
    pub stores: u64,
    /// All of them had been asked for by a flush of another thread that has not fenced yet.
    pub flushed_elsewhere: bool,
}

/// What a fence completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FenceEffect {
    /// The model takes this instruction for a fence (`--strict-fences` passes over locked ones).
    pub counts: bool,
    /// Flushes that the thread executed since its last fence, the useless ones included.
    pub flushes: u64,
    /// Non-temporal line writes since its last fence.
    pub streamed: u64,
    /// Lines that the thread had asked for.
    pub lines_asked: u64,
    /// Lines on which this fence made a store guaranteed. Two or more: no order among them was.
    pub lines_settled: u64,
    /// Stores that this fence made guaranteed.
    pub stores: u64,
}

/// What an event did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that a power failure could show.
    None,
    /// See [`Applied::stored`](crate::tracker::Applied::stored) for the lines.
    Store,
    /// A fence, then a store.
    Rmw(FenceEffect),
    Flush(FlushEffect),
    Fence(FenceEffect),
    /// `msync`, `fsync`, `fdatasync`: that many lines and stores became guaranteed.
    Sync {
        lines: u64,
        stores: u64,
    },
    /// These whole lines are zero now, guaranteed; bytes of the range outside them were stored.
    Zeroed {
        place: Place,
        len: u64,
    },
    /// The pool has this length now, guaranteed.
    Resized {
        pool: PoolId,
        len: u64,
    },
    /// The thread is gone; what it had asked for will not be completed by it.
    ThreadEnded,
}
