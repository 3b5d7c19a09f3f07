//! The host's side of the probe backend: starts a target under the probe, takes the probe's records out of the ring
//! that they share, and writes them down as the events of a trace.

#[cfg(test)]
mod altered;
mod code_map;
mod collect;
mod define;
mod error;
mod file_changes;
mod flow;
mod host;
mod mappings;
mod payload;
mod pool_files;
mod process;
mod translate;

pub use error::HostError;
pub use host::{ProbeRecorder, Until};
