//! What a run may use. One that takes more is ended.

use std::time::Duration;

/// Output beyond this many times what is kept ends the run.
pub const OUTPUT_ENDS_RUN: u64 = 16;

/// Limits for one run with all its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub wall: Duration,
    pub cpu: Duration,
    /// Bytes of anonymous memory in use; the pools and other files do not count.
    pub memory: u64,
    /// Bytes kept of each output stream; [`OUTPUT_ENDS_RUN`] times as many end the run.
    pub output: u64,
    /// Processes at a time.
    pub processes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            wall: Duration::from_secs(10),
            cpu: Duration::from_secs(10),
            memory: 1 << 30,
            output: 1 << 20,
            processes: 64,
        }
    }
}
