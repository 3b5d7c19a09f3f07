//! What can go wrong while programs are found and built.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}:{line}: unknown directive `{text}`; the README.md of its suite lists them", path = path.display())]
    Directive { path: PathBuf, line: usize, text: String },
    #[error("{path}:{line}: `//~ {text}` names no rule; write ids, as in `//~ FP0101`", path = path.display())]
    Expectation { path: PathBuf, line: usize, text: String },
    #[error("{path}: no `//@ build:` line; add one (c, cxx, rust or asm)", path = path.display())]
    NoLanguage { path: PathBuf },
    #[error("cannot run `{compiler}`: {source}; install it (Debian: gcc, g++, and rustup's rustc)")]
    NoCompiler { compiler: String, source: io::Error },
    #[error("`{command}` failed:\n{stderr}")]
    Compile { command: String, stderr: String },
    #[error("{path}: no `//! {key}:` line; targets/crash/README.md lists what a program's head must say", path = path.display())]
    NoHeadLine { path: PathBuf, key: &'static str },
    #[error("{path}:{line}: `//~ {text}` is no guilty line in a function; write a variant and its only class, as in `//~ 3 ordering`", path = path.display())]
    Marker { path: PathBuf, line: u32, text: String },
    #[error("{path}: variant {variant} has no guilty line; mark its store with `//~ {variant} CLASS`", path = path.display())]
    NoMarker { path: PathBuf, variant: u32 },
    #[error("{path} is not there: install Debian's libpmemobj-dev", path = path.display())]
    NoPmdk { path: PathBuf },
}

impl TargetError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> TargetError {
        let path = path.into();
        move |source| TargetError::Io { path, source }
    }
}
