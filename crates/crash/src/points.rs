//! Crash points: the places of a trace where power is made to fail, and which of them are alike.

use std::str::FromStr;

use persistency::model::ModelKind;
use serde::{Deserialize, Serialize};
use trace::event::{CodeAddr, ContextId, EventId};
pub use verdict::crash_point::PointKind;

/// Functions that make a new pool. PMDK says that an interrupted one leaves no usable pool (`pmemobj_create(3)`: run
/// `pmempool rm` and try again), so recovery is not asked what it makes of that.
pub const CREATORS: [&str; 10] = [
    "pmemobj_create",
    "pmemobj_createU",
    "pmemobj_createW",
    "pmempool_create",
    "pmempool_createU",
    "pmemblk_create",
    "pmemblk_createU",
    "pmemlog_create",
    "pmemlog_createU",
    "util_pool_create_uuids",
];

/// Crash points with the same call path, instruction and kind are one failure point (Mumak §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FailurePoint {
    pub context: ContextId,
    pub pc: CodeAddr,
    pub kind: PointKind,
}

/// A crash point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Point {
    /// Its place among all crash points of the trace.
    pub index: u64,
    /// The first event that has not happened.
    pub at: EventId,
    pub key: FailurePoint,
    /// The first time that its failure point is met is 1.
    pub occurrence: u64,
}

/// How dense crash points are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Density {
    /// Before flushes, fences and the like that have a PM store since the last crash point; at operation boundaries.
    #[default]
    Fences,
    /// After each store as well.
    Stores,
}

impl Density {
    /// Where a model needs crash points. On eADR the states of a run are the prefixes of its stores: between two points that skip a
    /// store lies a state that neither has. On ADR a store is pending until something settles it, and the point before that has all states.
    pub fn of(model: ModelKind) -> Density {
        match model {
            ModelKind::X86Adr => Density::Fences,
            ModelKind::X86Eadr => Density::Stores,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there are no crash points `{0}`; write `fences` (before flushes and fences) or `stores` (after each store too)"
)]
pub struct UnknownDensity(pub String);

impl FromStr for Density {
    type Err = UnknownDensity;

    fn from_str(text: &str) -> Result<Self, UnknownDensity> {
        match text {
            "fences" => Ok(Density::Fences),
            "stores" => Ok(Density::Stores),
            _ => Err(UnknownDensity(text.to_owned())),
        }
    }
}
