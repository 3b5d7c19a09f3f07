//! Units in their stream.

use std::collections::HashMap;

use redis::streams::StreamId;
use redis::{Cmd, Value, cmd, from_redis_value_ref};

use super::keys::Keys;

/// A unit as it waits, or as a worker has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnitEntry {
    /// Its place in the stream.
    pub place: String,
    /// Its hash.
    pub unit: String,
    /// The list of units that it belongs to.
    pub list: String,
    /// Workers that have given it back.
    pub failed: u64,
    pub work: Vec<u8>,
}

impl UnitEntry {
    pub fn add(keys: &Keys, unit: &str, list: &str, failed: u64, work: &[u8]) -> Cmd {
        let mut add = cmd("XADD");
        add.arg(keys.units()).arg("*").arg("u").arg(unit).arg("l").arg(list).arg("f").arg(failed).arg("w").arg(work);
        add
    }

    /// None if it is none of ours.
    pub fn of(entry: &StreamId) -> Option<UnitEntry> {
        let field = |name: &str| text(&entry.map, name);
        Some(UnitEntry {
            place: entry.id.clone(),
            unit: field("u")?,
            list: field("l")?,
            failed: field("f")?.parse().ok()?,
            work: entry.map.get("w").and_then(|value| from_redis_value_ref(value).ok())?,
        })
    }
}

/// A field of an entry.
pub(super) fn text(map: &HashMap<String, Value>, name: &str) -> Option<String> {
    map.get(name).and_then(|value| from_redis_value_ref(value).ok())
}
