//! Assembly between translated code and the engine.
//!
//! - [`note`]: notes what a recovery run reads and writes, instead of writing a record.
//! - [`pass`]: leaves translated code for Rust and returns, with the whole state of the program saved.
//! - [`peek`]: reads memory of the program that may not be mapped.
//! - [`record`]: writes one record from inside a block, without leaving it.

pub mod note;
pub mod pass;
pub mod peek;
pub mod record;
