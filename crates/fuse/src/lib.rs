//! File systems in user space under test: where they mount, what their trees are without a crash, and the judge of those after
//! one.
//!
//! ```text
//!   mounting   a mount namespace of our own, or fusermount3
//!   reference  the workload without a crash: answers and trees
//!   judge      the tree after a crash against those before and after the operation
//! ```

pub mod judge;
pub mod mounting;
pub mod reference;
