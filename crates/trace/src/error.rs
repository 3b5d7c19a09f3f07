//! What can go wrong with a trace file, worded for the person at the terminal.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("cannot write the trace {path}: {source}{hint}")]
    Io { path: PathBuf, source: io::Error, hint: &'static str },
    #[error("cannot read the content of pool {pool} for the trace: {source}; {}", readable(source))]
    Pool { pool: String, source: io::Error },
    /// The recorder broke the contract of `event`; the file stays readable up to here.
    #[error("a recorder handed over an event that no trace can hold ({0}); this is a bug in Fencepost")]
    BadEvent(&'static str),
}

impl WriteError {
    pub(crate) fn io(path: &Path, source: io::Error) -> WriteError {
        let hint = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "; free some space or write the trace elsewhere with -o; what was written so far can still be read"
            }
            io::ErrorKind::FileTooLarge => "; the file size limit (ulimit -f) is too small for this recording",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "; choose another place with -o",
            io::ErrorKind::NotFound => "; its folder does not exist, make it first or choose another place with -o",
            _ => "",
        };
        WriteError::Io { path: path.to_owned(), source, hint }
    }
}

/// What must be so for a pool to be read.
fn readable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "make the file readable for the user who records",
        _ => "if `cat` cannot read the file either, let the program use a pool on another disk",
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read the trace {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is not a Fencepost trace; record one with `fencepost record`")]
    NotATrace { path: PathBuf },
    #[error(
        "{path} is a trace of format version {found}, this Fencepost reads version {known}; \
         use the Fencepost that recorded it or record again"
    )]
    Version { path: PathBuf, found: u32, known: u32 },
    #[error(
        "the trace {path} is damaged at byte {offset} ({what}); \
         events before that place can be read, record again for the rest"
    )]
    Corrupt { path: PathBuf, offset: u64, what: &'static str },
}

/// Bytes that do not mean anything; becomes [`ReadError::Corrupt`] where the file and the place are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub &'static str);
