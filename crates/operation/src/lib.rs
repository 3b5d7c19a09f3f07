//! Operations: the steps of a workload, one line each, and the answers that reveal data lost by a recovery that succeeds.
//!
//! ```text
//!   grammar ──► generate ──► workload (operations, readback of queries)
//!                                │
//!   trace ──► positions: which operation was under way at a crash point
//!                                │            expected: answers of runs without a crash
//!                                ▼                        │
//!                 what a recovered process is asked ──► equivalence ──► verdict
//! ```
//! After Witcher (SOSP 2021), §4.4: a crash inside operation *k*, recovery, then the rest of the operations must be answered as
//! if *k* had happened, or as if it had not.

pub mod answers;
pub mod boundaries;
pub mod equivalence;
pub mod expected;
pub mod generate;
pub mod grammar;
mod listing;
mod queries;
pub mod resumed;
pub mod text;
pub mod window;
pub mod workload;
