//! What can go wrong between the host and a target under the probe.

use std::io;

use trace::WriteError;

/// The target could not be started under the probe.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("this build has no probe (FENCEPOST_NO_PROBE=1 was set); rebuild it or use --backend step")]
    NoProbe,
    #[error("cannot {action}: {source}")]
    System { action: &'static str, source: io::Error },
    #[error("too many or too long --{option} arguments: at most {most} fit")]
    TooMany { option: &'static str, most: usize },
    #[error("the program's path is {0} bytes long; at most {most} can be passed to the probe", most = wire::control::EXEC_BYTES - 16)]
    PathTooLong(usize),
    #[error("loads and the flow of a run cannot be recorded at once; the flow has every load")]
    FlowAndLoads,
    #[error("cannot start the probe in the target's process: {0}")]
    Exec(io::Error),
}

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
    #[error(
        "the records of the target's process are damaged ({what} at byte {at} of the stream); the program may have \
             overwritten the probe's memory, please report it"
    )]
    Damaged { what: &'static str, at: u64 },
    #[error("the descriptor of the pool `{path}` did not arrive: {source}")]
    PoolMissing { path: String, source: io::Error },
}

/// For `map_err`: a failed system call with what it was for.
pub(super) fn os(action: &'static str) -> impl Fn(io::Error) -> LaunchError {
    move |source| LaunchError::System { action, source }
}
