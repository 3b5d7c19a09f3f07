//! What would help.

use finding::failure::{Remedy, Repair};

use super::place::place;

/// A sentence without its full stop.
pub fn repair(repair: &Repair) -> String {
    let what = match repair.insert {
        Remedy::Fence => "a fence",
        Remedy::FlushAndFence => "a flush of that line and a fence",
    };
    let after = place(&repair.after);
    match &repair.before {
        Some(before) => format!(
            "{what} after {after}, before {}, would make this state impossible (checked on the trace)",
            place(before)
        ),
        None => format!("{what} right after {after} would make this state impossible (checked on the trace)"),
    }
}
