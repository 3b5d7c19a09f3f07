//! What can end a single-stepped recording early.

use std::io;

/// Why the reference recorder could not go on.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    #[error("cannot start `{path}`: {source}")]
    Start { path: String, source: io::Error },
    #[error(
        "ptrace {request} failed for thread {tid}: {source}; single-stepping needs permission to trace (no other debugger, no seccomp filter against ptrace)"
    )]
    Ptrace { request: &'static str, tid: i32, source: io::Error },
    #[error("cannot access memory {address:#x} of thread {tid}: {source}")]
    Memory { tid: i32, address: u64, source: io::Error },
    #[error(
        "the instruction {bytes} at {pc:#x} executed, but the reference decoder does not know it; record with `--backend probe`"
    )]
    UnknownInstruction { pc: u64, bytes: String },
    #[error(
        "`{instruction}` at {pc:#x} {what}; the reference recorder does not support that, record with `--backend probe`"
    )]
    Unsupported { pc: u64, instruction: String, what: &'static str },
    #[error(
        "`{instruction}` at {pc:#x} changed PM at {address:#x}, though the instruction table says that it does not store there: a bug in Fencepost"
    )]
    MissedStore { pc: u64, instruction: String, address: u64 },
    #[error("pool `{path}` cannot be opened for its content: {source}; check that you may read it")]
    Pool { path: String, source: io::Error },
    #[error("the reference recorder has no values mode; record with `--backend probe`")]
    Values,
    #[error("waiting for the target failed: {0}")]
    Wait(io::Error),
    #[error(transparent)]
    Write(#[from] trace::WriteError),
}
