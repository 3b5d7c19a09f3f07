//! What a simulated power failure broke, as data: where power failed, how it showed, which stores were to blame, what would help.

use serde::{Deserialize, Serialize};
use trace::event::{EventId, PoolOffset, ThreadId};
use verdict::crash_point::CrashPoint;
use verdict::symptom::Symptom;

use crate::finding::Location;

/// One failure that stands for all with its cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashFailure {
    pub symptom: Symptom,
    pub crash_point: CrashPoint,
    /// Cache lines that were not guaranteed there.
    pub dirty_lines: u64,
    /// Stores that were not in PM: lost, or not executed yet (by the role of their location).
    pub missing: Vec<NamedStore>,
    /// Stores that were.
    pub present: Vec<NamedStore>,
    pub repair: Option<Repair>,
    /// The event of the workload at which power had failed before, if this is a failure of the recovery from that.
    pub recovery_from: Option<EventId>,
}

/// A store, with names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedStore {
    pub location: Location,
    /// What is stored to, in the words of the source.
    pub name: Option<String>,
    pub event: EventId,
    pub thread: ThreadId,
    /// The function that the thread runs.
    #[serde(default)]
    pub thread_runs: Option<String>,
    /// The bytes that it stored to.
    #[serde(default)]
    pub bytes: Option<PoolBytes>,
}

/// Bytes of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolBytes {
    /// Its file name.
    pub pool: String,
    pub offset: PoolOffset,
    pub len: u64,
}

/// What a reader of the program would have taken for granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum BrokenPromise {
    /// The store is never made durable.
    Durable { store: Option<NamedStore> },
    /// It is made durable too late.
    DurableInTime { store: Option<NamedStore> },
    /// It becomes durable only because a later flush of its line was for another store.
    DurableOnPurpose { store: Option<NamedStore> },
    /// Nothing orders the first before the second.
    Ordered { first: Option<NamedStore>, second: Option<NamedStore> },
    /// The program itself stores one before the other, which it needs.
    StoredAfter { store: Option<NamedStore>, needed: Option<NamedStore> },
    /// A store that crosses a cache line can be torn.
    Whole { store: Option<NamedStore> },
    /// Stores that belong together; the other one is not always known.
    Together { one: Option<NamedStore>, other: Option<NamedStore> },
    /// Recovery ends.
    Ends { after: NamedStore },
    /// Recovery survives.
    Survives { at: Option<Location> },
}

/// What to insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// The flush is there already.
    Fence,
    FlushAndFence,
}

/// What would make the failing state impossible, checked on the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    pub insert: Remedy,
    pub after: Location,
    /// What to flush, in the words of the source.
    #[serde(default)]
    pub name: Option<String>,
    /// The bytes to flush.
    #[serde(default)]
    pub bytes: Option<PoolBytes>,
    /// The store that must not come first; none: right after the other.
    pub before: Option<Location>,
}
