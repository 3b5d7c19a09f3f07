//! What can keep a recovery from being run at all. (What a recovery does wrong is a report, not an error.)

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum NativeError {
    #[error("cannot put a crash image at {path}: {source}; the pool's directory must exist and be accessible")]
    Pool { path: PathBuf, source: io::Error },
    #[error("cannot read the crash image {path}: {source}")]
    Image { path: PathBuf, source: io::Error },
    #[error("cannot prepare a private place for the pool {path}: {source}; is there space left in its file system?")]
    Scratch { path: PathBuf, source: io::Error },
    #[error(
        "cannot swap the pool {path} for a crash image: {source}; its directory must be writable, because this \
             system allows no private mounts (user namespaces are off)"
    )]
    Swap { path: PathBuf, source: io::Error },
    #[error(
        "cannot show {path} as it was before it was made: that takes a private folder in place of {dir}, which this system refuses ({why}); \
             put the pool into a folder of its own"
    )]
    Absent { path: PathBuf, dir: PathBuf, why: String },
    #[error("no program {program} in the PATH of the recovery command; give its path")]
    NoProgram { program: PathBuf },
    #[error("cannot execute {program}: {source}; check the recovery command")]
    Exec { program: PathBuf, source: io::Error },
    #[error("cannot enter {dir}, the working directory of the recovery command: {source}")]
    Directory { dir: PathBuf, source: io::Error },
    #[error("cannot open {path} as the standard input of the recovery command: {source}")]
    Input { path: PathBuf, source: io::Error },
    #[error("the recovery command has a zero byte in {word:?}; no program can be given such a word")]
    Word { word: String },
    #[error(
        "cannot isolate a recovery run ({what}): {source}; user and mount namespaces may be switched off on this system (sysctl user.max_user_namespaces)"
    )]
    Isolate { what: &'static str, source: io::Error },
    #[error("the run was ended from outside")]
    Cancelled,
    #[error("cannot {what} for a recovery run: {source}")]
    System { what: &'static str, source: io::Error },
}

/// Turns an error of the system into one that says what was tried.
pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> NativeError {
    move |source| NativeError::System { what, source }
}
