//! Knows what each x86-64 Linux system call reads and writes of a program's memory: one table ([`table`]), one row per call.
//!
//! The probe acts on it (`crates/probe/src/syscall/buffers.rs`): a pointer into PM is redirected according to its row, and
//! what the kernel wrote there becomes an event. The reference recorder has a second source, C prototypes
//! (`crates/record/src/step/prototypes.txt`); a test there compares the two.
#![no_std]

mod facts;
mod table;

pub use facts::{Access, Length, Shape, SyscallFacts, Use};
pub use table::{TABLE, entry};
