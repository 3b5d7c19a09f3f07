//! Starts targets under a recorder backend and collects their events in a trace.

pub mod ending;
pub mod file_book;
pub mod flow;
pub mod libraries;
pub mod probe_host;
pub mod recorder;
pub mod recording;
pub mod request;
pub mod step;
pub mod stop;
mod trace_file;

pub use supervise::target;
