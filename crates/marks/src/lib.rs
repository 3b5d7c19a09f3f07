//! Marks the operations of a program for Fencepost. Each mark is one instruction that does nothing: a program with marks runs
//! as well without it. On processors other than x86-64 there is no instruction at all.
//!
//! ```
//! fencepost_marks::operation(|| {
//!     // insert, delete, ...
//! });
//! ```
#![no_std]

mod instruction;
mod operation;

pub use instruction::{begin, end};
pub use operation::operation;
