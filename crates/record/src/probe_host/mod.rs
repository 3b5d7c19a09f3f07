//! The host's side of the probe backend: starts a target under the probe, takes the probe's records out of the ring
//! that they share, and writes them down as the events of a trace.

mod code_map;
mod collect;
mod configure;
mod define;
mod embedded;
pub mod engine;
mod error;
mod flow;
mod host;
mod keeper;
mod lasting;
mod launch;
mod mappings;
mod memfd;
mod payload;
mod pool_files;
mod process;
mod shared;
mod translate;

pub use embedded::{ProbeImage, is_embedded};
pub use error::{HostError, LaunchError};
pub use host::{ProbeRecorder, Until};
pub use launch::Isolation;
