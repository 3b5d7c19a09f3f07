//! What can go wrong between the host and a target under the probe.

use std::io;

use supervise::probe::LaunchError;
use trace::WriteError;

/// A recording ended before its target did.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("the recording cannot go on: {0}")]
    Write(#[from] WriteError),
    /// The probe cannot go on with this target, and says why.
    #[error("{0}")]
    Refused(String),
    /// The probe made a mistake.
    #[error("{0}")]
    Internal(String),
    #[error(
        "the records of the target's process are damaged ({what} at byte {at} of the stream); the program may have \
             overwritten the probe's memory, please report it"
    )]
    Damaged { what: &'static str, at: u64 },
    #[error("the descriptor of the pool `{path}` did not arrive: {source}")]
    PoolMissing { path: String, source: io::Error },
}
