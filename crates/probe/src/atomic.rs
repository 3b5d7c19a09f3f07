//! The atomics of [`crate::lock`]. Tests compile that file with other atomics, whose schedule they choose.

pub use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
