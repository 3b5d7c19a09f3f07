//! What a recorder is: one way to run a target and write down what reaches persistent memory.
//!
//! Duties of every recorder, numbered so that the conformance suite can cite them. The events themselves follow
//! rules 1 to 9 of [`trace::event`]; these are the points that those rules leave open.
//!
//! 1. **Addresses.** The target runs without address space randomisation and gets every mapping where the kernel
//!    or the program wants it.
//! 2. **Pools.** A pool is a device and inode. With globs, a regular file (or DAX device) becomes one when a
//!    descriptor for it is opened under a matching path; without, when it has a name and is first mapped shared and writable
//!    (by `mmap`, or by an `mprotect` that adds write permission). Its content is saved then, before the event
//!    that made it a pool. Globs match the absolute path; `*` matches any characters, `/` too.
//! 3. **Mappings.** Every shared mapping of a pool is a `Map`, whatever its protection; lengths are rounded up to
//!    whole pages. What a new mapping or a `munmap` takes away is one `Unmap` per piece, by ascending address,
//!    before the `Map`. `mremap` in place is an `Unmap` or a `Map` of the part that changed; a move is an `Unmap`
//!    of the old range and a `Map` of the new one. Fork, exec and exit make no such events.
//! 4. **Files.** If a call changes the length of a pool's file, `Resize` comes before the `FileWrite` or
//!    `FileZero` of the same call.
//!    With `files`, changes of other files and of all names follow rules 10 to 14; what goes to the files behind the standard streams that
//!    the target was given, and to `/proc`, `/sys` and `/dev` (but `/dev/shm`), is none of them. A write with `O_SYNC`, `O_DSYNC`, `RWF_SYNC` or
//!    `RWF_DSYNC` is followed by an `Msync` of its range; `sync` and `syncfs` are an `Fsync` of every pool there.
//! 5. **Processes.** A process begins with `ProcessStart`, given by its first thread, which has no `ThreadStart` of
//!    its own. `exit_group`, and `exit` of the last thread, is a `ProcessExit`; `exit` of another thread is a
//!    `ThreadEnd`. Threads that end because their process does have no `ThreadEnd`. Starts, `ThreadEnd`, `Exec` and
//!    deaths by signal have no instruction and no context.
//!    A `Return` is told at the return address, with the caller's context; after tail calls the last function returns.
//! 6. **Determinism.** Time, time-stamp counter and randomness are those of [`wire::virtual_time`], the vDSO is
//!    hidden, unless the options let the real ones through.
//! 7. **End.** Every process that the target started has ended, or has been killed, when `record` returns.
//! 8. **Failing.** What cannot be recorded exactly ends the recording with an error that says what it was.

use supervise::probe::Substituted;
use trace::event::ExitStatus;
use trace::{Summary, TraceWriter};

use crate::flow::{FlowHandle, InputFile};
use crate::target::Target;

/// What to record and what to let through.
#[derive(Clone, Debug, Default)]
pub struct RecordOptions {
    /// Paths of pools (`--pm`); empty: every writable shared mapping of a regular file that has a name, or of a DAX device.
    pub pm: Vec<String>,
    /// Functions whose calls are recorded (`--watch`).
    pub watch: Vec<String>,
    /// Record loads from PM.
    pub loads: bool,
    pub real_time: bool,
    pub real_random: bool,
    pub real_tsc: bool,
    /// Serve standard input line by line and mark operation boundaries.
    pub operations_stdin: bool,
    /// Private files that the target finds in place of others; the `probe` backend only.
    pub substitutes: Vec<Substituted>,
    /// Record what happens to files that are no pools, and to names.
    pub files: bool,
    /// Who wants to know the flow of the run (see [`crate::flow`]). Not together with `loads`.
    pub flow: Option<FlowHandle>,
    /// Values mode: the flow has operands as well, and tells where the input comes to lie. The `probe` backend only.
    pub values: Option<InputFile>,
}

/// What a finished recording tells, beside the trace.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// How the first target process ended.
    pub status: ExitStatus,
    pub summary: Summary,
}

/// One way to run a target and record it; see the module's numbered duties.
pub trait Recorder {
    type Error: std::error::Error;

    /// The name that goes into the trace.
    fn name(&self) -> &'static str;

    /// Runs the target to its end and finishes the trace.
    fn record(&self, target: &Target, options: &RecordOptions, trace: TraceWriter) -> Result<Recorded, Self::Error>;
}
