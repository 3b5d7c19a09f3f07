//! Finds misuse of persistent memory in one pass over a trace, without simulating a crash.
//!
//! ```text
//!   Event ──► Tracker ──► Step ──► every Rule that wants such events ──► sightings ──► findings
//!                │                                                          ▲
//!                └── at the end: stores that never became durable ──► Rule ─┘
//! ```
//!
//! One file per rule in [`rules`], all behind one trait, [`rule::Rule`], which scripts ([`script`]) implement as well.
//! [`registry`] lists what is built in; [`mod@lint`] drives the pass. Memory grows with the lines that are dirty or were
//! flushed and with the places in the code, not with the trace.

pub mod explain;
mod flushed;
mod judge;
pub mod lint;
mod mappings;
mod pmdk;
pub mod registry;
pub mod rule;
pub mod rules;
pub mod script;
pub mod sightings;
mod silent;
pub mod world;
