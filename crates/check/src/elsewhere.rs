//! A check whose crash points are judged on other machines: what they are told, and what they do with it.
//!
//! The coordinator records, runs the operations without a crash, decides on causes and confirms. Workers get the trace, the plan of recoveries and,
//! for every pass, what it assumes; they judge crash points and send the outcomes back. They also look into failing states: what they run then, the
//! coordinator need not run.

mod coordinator;
mod sent;
mod worker;

pub use coordinator::Fleet;
pub use sent::KIND;
pub use worker::{Fetch, Judge, Judged, Post};
