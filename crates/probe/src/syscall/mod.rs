//! The program's system calls. Most go to the kernel unchanged; the rest are in one file per family.

pub mod buffers;
pub mod descriptors;
pub mod dispatch;
pub mod event;
pub mod exit;
pub mod files;
pub mod memory;
pub mod names;
pub mod operations;
pub mod proc;
pub mod random;
pub mod refused;
pub mod standard;
pub mod time;
pub mod timers;
pub mod vectors;
pub mod waits;

pub use dispatch::handle;
