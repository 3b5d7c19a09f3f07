//! From failing crash states to root causes.
//!
//! ```text
//!   failing state ──► trial     other states of the same point, run or remembered (memory: what the search has learnt)
//!                       │
//!                       ▼
//!                   minimise    the fewest stores that are missing, the fewest that are there
//!                       ▼
//!                   classify    durability, ordering, atomicity, recovery
//!                       ▼
//!                   repair      the flush and fence that make the state impossible, tried on the trace
//!                       ▼
//!                   explain     a finding, grouped by the code to blame ──► confirm (plain mode, twice) ──► bundle, exhibit
//! ```
//!
//! [`runner`] runs recovery on crash images: it joins slots, the fork server, plain mode and the oracle.

pub mod again;
pub mod analyse;
pub mod bundle;
pub mod classify;
pub mod clusters;
pub mod confirm;
pub mod exhibit;
pub mod explain;
mod hint;
pub mod hunt;
mod lvalue;
pub mod memory;
pub mod minimise;
mod names;
mod pace;
mod patience;
mod program_order;
mod record_recovery;
mod recovery_hints;
pub mod rehearse;
pub mod rehearse_error;
mod rehearse_live;
mod rehearse_plain;
mod rehearse_resumed;
mod rehearse_windows;
pub mod repair;
pub mod runner;
pub mod story;
pub mod transient;
pub mod trial;
