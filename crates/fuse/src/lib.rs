//! Runs user-space file systems under test: mounts them, reads their trees without a crash, and judges their trees after one.
//!
//! ```text
//!   mounting   a mount namespace of our own, or fusermount3
//!   reference  the workload without a crash: answers and trees
//!   judge      the tree after a crash against those before and after the operation
//! ```

pub mod judge;
pub mod mounting;
pub mod reference;
