//! What can go wrong in a driver.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::command::code;

#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    #[error("cannot {action}: {source}")]
    System { action: &'static str, source: io::Error },
    #[error("cannot start `{program}`: {source}; check the command's first word")]
    Start { program: String, source: io::Error },
    #[error("`{program}` ended ({how}) before the first operation")]
    FirstFailed { program: String, how: String, status: ExitStatus },
    #[error("`{program}` ended with {how}")]
    Failed { program: String, how: String, status: ExitStatus },
    #[error("the server ended ({how}) before it accepted a connection at {address}")]
    NeverAccepted { address: String, how: String, status: ExitStatus },
    #[error("the server accepts no connection at {address}; check that its command line names the same place")]
    Deaf { address: String },
    #[error("the server closed the connection instead of answering `{operation}`")]
    Closed { operation: String },
    #[error("the server ended ({how}) instead of answering `{operation}`")]
    Died { operation: String, how: String, status: ExitStatus },
    #[error("the server's answer to `{operation}` is not as the protocol says: {what}")]
    Garbled { operation: String, what: String },
    #[error("operation `{operation}` cannot be sent: {what}")]
    Unsendable { operation: String, what: String },
    #[error("the server did not end after SIGTERM and was killed")]
    Stubborn,
    #[error("the server ended ({how}) when it was asked to, after the last operation")]
    BadEnd { how: String, status: ExitStatus },
    #[error("the command of the file system is empty; name its daemon")]
    NoDaemon,
    #[error("the daemon of the file system ended ({how}) without mounting")]
    NeverMounted { how: String, status: ExitStatus },
    #[error("the daemon of the file system ended before it was unmounted; keep it in the foreground (libfuse: -f)")]
    InBackground,
    #[error("the daemon of the file system did not mount in time and was killed")]
    MountHangs,
    #[error("the daemon of the file system ended with {how} when it was unmounted")]
    BadUnmount { how: String, status: ExitStatus },
    #[error("the daemon of the file system did not end after it was unmounted and was killed")]
    OutlivesUnmount,
}

impl DriveError {
    /// What it drives ended so.
    fn status(&self) -> Option<ExitStatus> {
        match self {
            DriveError::FirstFailed { status, .. }
            | DriveError::NeverAccepted { status, .. }
            | DriveError::Failed { status, .. }
            | DriveError::Died { status, .. }
            | DriveError::NeverMounted { status, .. }
            | DriveError::BadUnmount { status, .. }
            | DriveError::BadEnd { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// How the driver ends: as what it drives did, if that is known. It has failed, whatever the other says.
    pub fn code(&self) -> u8 {
        match (self, self.status()) {
            (_, Some(status)) => code(status).max(1),
            (DriveError::Start { .. }, None) => 127,
            _ => 1,
        }
    }

    /// The signal that ended what it drives: the driver shall end by it, too.
    pub fn signal(&self) -> Option<i32> {
        self.status().and_then(|status| status.signal())
    }
}

/// For `map_err`.
pub fn system(action: &'static str) -> impl Fn(io::Error) -> DriveError {
    move |source| DriveError::System { action, source }
}
