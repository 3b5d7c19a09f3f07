//! Assembly between translated code and the engine.
//!
//! - [`note`]: what a recovery run reads and writes, instead of a record.
//! - [`pass`]: leaving translated code for Rust and coming back, with the whole state of the program saved.
//! - [`peek`]: reading memory of the program that may not be there.
//! - [`record`]: writing one record from inside a block, without leaving it.

pub mod note;
pub mod pass;
pub mod peek;
pub mod record;
