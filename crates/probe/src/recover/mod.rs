//! Recovery runs (`wire::recover`): no events are recorded. Instead, the pools are private files, the process becomes a fork
//! server at the first use of a pool, and each run reports what it read and changed.

pub mod calls;
pub mod crash;
pub mod dense;
pub mod limits;
pub mod listing;
pub mod notes;
pub mod outside;
pub mod paths;
pub mod reference;
pub mod roots;
pub mod script;
pub mod serve;
pub mod undo;

use wire::control::option;

use crate::ring::control;

/// Do paths of pools stand for private files? So in recovery runs, and when a recovery is recorded.
pub fn substitutes() -> bool {
    control().recovery.substitute_count != 0
}

/// Is this a recovery run?
pub fn on() -> bool {
    control().options & option::RECOVER != 0
}
