//! Reference runs: the program without a crash, which tells what is right to answer after one.
//!
//! ```text
//!   run        which of the ways below, and what they must agree on
//!   live       one live process, forked at every operation boundary
//!   native     processes started anew on the pools as they were at a boundary
//!   windows    operations that run at the same time: every order is right
//!   resumed    programs that read their operations themselves
//! ```

pub mod error;
mod live;
mod native;
mod resumed;
pub mod run;
mod windows;
