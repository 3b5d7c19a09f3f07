//! What a report shows of one finding beside its words: the cache lines involved along the trace around the crash, the bytes
//! that recovery could not cope with, and the operations. Plain data, bounded, and readable without the trace.
//!
//! ```text
//!   window    a part of the trace; of its events only those that matter to the lanes
//!   lane      a cache line, with the stores of which some prefix is in PM
//!   marks     after an event, per lane: how many of its stores were made, asked for by a flush, guaranteed
//! ```

use serde::{Deserialize, Serialize};
use trace::event::{EventId, PoolOffset, ThreadId};

use crate::finding::{Finding, Location};
use crate::source::Excerpt;

/// Of the file; other versions are not read.
pub const VERSION: u32 = 2;

/// Number of a lane in its time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LaneNo(pub u32);

/// Number of a place in the code in its time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlaceNo(pub u32);

/// Everything about one finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub fencepost_evidence: u32,
    pub finding: Finding,
    /// Around the finding's locations.
    pub excerpts: Vec<Excerpt>,
    pub timeline: Timeline,
    pub difference: Difference,
    pub operations: Vec<Operation>,
}

/// The lines around the crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The first event that has not happened when power fails.
    pub crash: EventId,
    pub from: EventId,
    pub to: EventId,
    pub lanes: Vec<Lane>,
    pub events: Vec<ShownEvent>,
    pub places: Vec<CodePlace>,
    pub frames: Vec<Location>,
    /// Other lines that were stored to in the window.
    pub lanes_left_out: u64,
    /// Events of the window that matter to the lanes but are too many to show.
    pub events_left_out: u64,
}

/// Why a lane is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Has a store that was missing.
    Missing,
    /// Has a store that was there.
    Present,
    /// Has both.
    Both,
    /// Was stored to nearby.
    Other,
}

/// A cache line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// The file name of its pool.
    pub pool: String,
    pub offset: PoolOffset,
    pub side: Side,
    /// What its stores store to, in the words of the source.
    pub names: Vec<String>,
    /// Stores from before the window that were still pending when it began.
    pub pending: Vec<Write>,
    /// How many of those a flush had asked for.
    pub asked: u64,
    /// How many of all its stores are in PM in the failing state.
    pub in_pm: u64,
}

/// One line's part of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    pub event: EventId,
    pub lane: LaneNo,
    /// The first byte inside the line.
    pub start: u8,
    /// In hexadecimal.
    pub bytes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceNo>,
    /// One of those that the finding names.
    #[serde(default, skip_serializing_if = "is_false")]
    pub guilty: bool,
}

/// What has become of a lane's stores: counted from the first one that the time line knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub lane: LaneNo,
    pub stored: u64,
    pub asked: u64,
    pub guaranteed: u64,
}

/// An event of the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownEvent {
    pub id: EventId,
    pub thread: ThreadId,
    /// `store`, `flush`, `sfence`, …
    pub what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceNo>,
    /// The lane that a flush is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneNo>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<Write>,
    /// Only of lanes for which something changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<u64>,
}

/// Where in the code events come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePlace {
    /// Numbers of frames, innermost first.
    pub frames: Vec<u32>,
    /// The place among them of the one that is the program's own.
    pub own: u32,
    /// Its line of source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What that line stores to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The bytes of the failing state beside those of one that recovery copes with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Which state it is compared with.
    pub with: Comparison,
    /// Recovery was run on that state, and passed.
    pub passes: bool,
    pub lines: Vec<LineDifference>,
    /// Lines that differ as well.
    pub left_out: u64,
}

/// What the failing state is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// The missing stores are in PM as well.
    #[default]
    Restored,
    /// The stores that are there too early are not in PM.
    Without,
    /// Power fails just before the store that is there too early.
    Before,
}

/// A line that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineDifference {
    pub pool: String,
    pub offset: PoolOffset,
    /// In hexadecimal, 64 bytes each.
    pub failing: String,
    pub passing: String,
    pub fields: Vec<Field>,
}

/// Bytes of a line that the source has a name for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    pub start: u8,
    pub len: u8,
    pub name: String,
}

/// One step of the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub index: u64,
    /// Its input, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<EventId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<EventId>,
    /// Power failed in it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub crashed: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}
