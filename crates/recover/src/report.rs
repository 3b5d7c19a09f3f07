//! What one recovery run did.

use std::time::Duration;

pub use crash::recovery::Read;
use persistency::line::LineId;

use crate::limits::Limit;

/// One call on the way to a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Path of the executable file or library; empty if no file holds the code.
    pub module: String,
    /// Address inside that file.
    pub address: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    Signalled {
        signal: i32,
        /// Innermost first; empty in plain mode.
        path: Vec<Frame>,
    },
    /// The wall-clock limit passed.
    Hung,
    OverLimit(Limit),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    pub end: End,
    /// The first bytes, as many as the limits keep.
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// How long the standard output was at each read between two operations; empty without operations, and in plain mode.
    pub borders: Vec<u32>,
    /// There was more output than was kept.
    pub output_cut: bool,
    /// Of all processes of the run.
    pub cpu: Duration,
    pub wall: Duration,
    /// In order of first read; none if they are not all known, as in plain mode.
    pub reads: Option<Vec<Read>>,
    /// Lines that recovery wrote; empty in plain mode.
    pub dirtied: Vec<LineId>,
    /// Recovery deleted a pool or put another file in its place.
    pub pools_replaced: bool,
}
