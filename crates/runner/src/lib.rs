//! Runs and judges recoveries on crash images, and makes the reference runs that give the right answers to operations.
//!
//! [`plan`] says what to run and how to judge it. [`runner`] joins slots, the fork server, native mode and the oracle behind
//! `crash::recovery::Recovery`. [`reference`](mod@reference) runs the program without a crash. [`record_recovery`] records a recovery as it runs.

pub mod adaptive_timeout;
mod commands;
pub mod image_file;
pub mod judge;
pub mod machine;
mod names;
pub mod plan;
pub mod record_recovery;
pub mod reference;
pub mod runner;
