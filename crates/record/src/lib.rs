//! Starts targets under a recorder backend and collects their events in a trace.

pub mod probe_host;
pub mod target;
