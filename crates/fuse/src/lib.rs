//! Runs user-space file systems under test: mounts them, reads their trees without a crash, and judges their trees after one.
//!
//! ```text
//!   mounting   a private mount namespace, or fusermount3
//!   reference  the workload without a crash: answers and trees
//!   screen     removes operations that fail without a crash from random workloads
//!   judge      compares the tree after a crash with those before and after the operation
//!   coverage   what a daemon did to PM in each workload
//!   case       one such judgement, kept with a finding
//! ```

pub mod case;
pub mod coverage;
pub mod judge;
pub mod mounting;
pub mod reference;
pub mod screen;

/// The kernel cuts a write where pages begin before it hands it to a daemon: `fuse_fill_write_pages` of Linux.
pub const PAGE: u64 = 4096;
