//! Oracles: decide whether a recovery run was right.
//!
//! ```text
//!   recovery command ──► (recover) ──► RunReport ──► Oracle::judge ──► Verdict with a Symptom
//!   checker command  ──► (recover) ──► RunReport ──┘
//! ```

pub mod command_line;
pub mod default_recovery;
mod normal;
pub mod oracle;
pub mod pattern;
mod symptom;
