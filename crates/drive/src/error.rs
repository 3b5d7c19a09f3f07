//! What can go wrong in a driver.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    #[error("cannot {action}: {source}")]
    System { action: &'static str, source: io::Error },
    #[error("cannot start `{program}`: {source}; check the command's first word")]
    Start { program: String, source: io::Error },
    #[error("`{program}` ended ({how}) before the first operation")]
    FirstFailed { program: String, how: String, code: u8 },
    #[error("`{program}` ended with {how}")]
    Failed { program: String, how: String, code: u8 },
    #[error("the server ended ({how}) before it accepted a connection at {address}")]
    NeverAccepted { address: String, how: String, code: u8 },
    #[error("the server accepts no connection at {address}; check that its command line names the same place")]
    Deaf { address: String },
    #[error("the server closed the connection instead of answering `{operation}`")]
    Closed { operation: String },
    #[error("the server ended ({how}) instead of answering `{operation}`")]
    Died { operation: String, how: String, code: u8 },
    #[error("the server's answer to `{operation}` is not as the protocol says: {what}")]
    Garbled { operation: String, what: String },
    #[error("operation `{operation}` cannot be sent: {what}")]
    Unsendable { operation: String, what: String },
    #[error("the server did not end after SIGTERM and was killed")]
    Stubborn,
    #[error("the server ended ({how}) when it was asked to, after the last operation")]
    BadEnd { how: String, code: u8 },
    #[error("the command of the file system is empty; name its daemon")]
    NoDaemon,
    #[error("the daemon of the file system ended ({how}) without mounting")]
    NeverMounted { how: String, code: u8 },
    #[error("the daemon of the file system ended before it was unmounted; keep it in the foreground (libfuse: -f)")]
    InBackground,
    #[error("the daemon of the file system did not mount in time and was killed")]
    MountHangs,
    #[error("the daemon of the file system ended with {how} when it was unmounted")]
    BadUnmount { how: String, code: u8 },
    #[error("the daemon of the file system did not end after it was unmounted and was killed")]
    OutlivesUnmount,
}

impl DriveError {
    /// How the driver ends: as what it drives did, if that is known.
    pub fn code(&self) -> u8 {
        match self {
            DriveError::FirstFailed { code, .. }
            | DriveError::NeverAccepted { code, .. }
            | DriveError::Failed { code, .. }
            | DriveError::Died { code, .. }
            | DriveError::NeverMounted { code, .. }
            | DriveError::BadUnmount { code, .. }
            | DriveError::BadEnd { code, .. } => *code,
            DriveError::Start { .. } => 127,
            _ => 1,
        }
    }
}

/// For `map_err`.
pub fn system(action: &'static str) -> impl Fn(io::Error) -> DriveError {
    move |source| DriveError::System { action, source }
}
