//! Where power is made to fail.

use serde::{Deserialize, Serialize};
use trace::event::EventId;

/// What comes next at a crash point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PointKind {
    Flush,
    Fence,
    /// A locked instruction on PM: a fence, then a store.
    Rmw,
    /// `msync`, `fsync`, `fdatasync`.
    Sync,
    /// The file system is about to zero a range or to change the pool's length.
    File,
    OperationBegin,
    OperationEnd,
    ThreadEnd,
    ProcessExit,
    EndOfTrace,
    /// Nothing in particular: a store has just happened.
    AfterStore,
    /// Nothing was stored yet.
    FirstStore,
}

/// A crash point, as a finding names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CrashPoint {
    /// The first event that has not happened.
    pub event: EventId,
    /// The operation that was under way, or the last one that was over; none before the first, and without operations.
    pub operation: Option<u64>,
    pub kind: PointKind,
}
