//! A check session: from a trace to confirmed findings.
//!
//! [`session`] ties it together: search, analyse, explain, confirm, write bundles. [`again`] crashes recoveries in turn.

pub mod again;
mod analysis_deadline;
mod confirm;
mod hint;
mod passes;
mod recovery_hints;
pub mod session;
pub mod transient;
