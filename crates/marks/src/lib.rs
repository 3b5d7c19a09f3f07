//! Marks the operations of a program for Fencepost. Each mark is one instruction that does nothing, so a program with marks
//! also runs without Fencepost. On processors other than x86-64 there is no instruction at all.
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
