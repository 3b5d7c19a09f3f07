//! Why a program could not be started under the probe.

use std::io;

use crate::supervised::StartError;
use crate::supervisor::StartStage;

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
    #[error("cannot start the probe in the program's process: {0}")]
    Exec(io::Error),
    #[error("cannot enter the program's working directory: {0}")]
    Directory(io::Error),
    /// The private mounts that were asked for are refused here.
    #[error("cannot mount private folders over the program's: {0}")]
    Mounts(io::Error),
    #[error(transparent)]
    Start(#[from] StartError),
}

impl LaunchError {
    /// From what the supervisor told.
    pub fn not_started(stage: StartStage, error: io::Error) -> LaunchError {
        match stage {
            StartStage::Directory => LaunchError::Directory(error),
            _ => LaunchError::Exec(error),
        }
    }
}

/// For `map_err`: a failed system call with what it was for.
pub(super) fn os(action: &'static str) -> impl Fn(io::Error) -> LaunchError {
    move |source| LaunchError::System { action, source }
}
