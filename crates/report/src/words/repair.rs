//! What would help.

use finding::failure::{Remedy, Repair};

use super::place::{bytes, place};

/// A sentence without its full stop.
pub fn repair(repair: &Repair) -> String {
    let what = match (repair.insert, &repair.name, &repair.bytes) {
        (Remedy::Fence, ..) => "a fence".to_owned(),
        (Remedy::FlushAndFence, Some(name), Some(at)) => format!("a flush of `{name}` ({}) and a fence", bytes(at)),
        (Remedy::FlushAndFence, None, Some(at)) => format!("a flush of {} and a fence", bytes(at)),
        (Remedy::FlushAndFence, _, None) => "a flush of that line and a fence".to_owned(),
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
