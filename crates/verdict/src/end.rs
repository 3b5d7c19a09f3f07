//! How a run ended.

use serde::{Deserialize, Serialize};

/// One call on the way to a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Path of the executable file or library; empty if no file holds the code.
    pub module: String,
    /// Address inside that file.
    pub address: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Exited(i32),
    Signalled {
        signal: i32,
        /// Innermost first; empty in native runs.
        path: Vec<Frame>,
    },
    /// The wall-clock limit passed.
    Hung,
    OverLimit(Limit),
}

/// The limit that ended a run. (Wall time is not among them: that is [`End::Hung`].)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    Cpu,
    Memory,
    Output,
    Processes,
}
