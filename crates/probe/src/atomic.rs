//! The atomics of [`crate::lock`]: tests compile that file with others, whose schedule they choose.

pub use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
