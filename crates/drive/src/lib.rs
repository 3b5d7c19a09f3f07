//! Drivers: programs that read operations from standard input, one per line, and answer them on standard output, whatever
//! the program under test wants instead. Fencepost then sees one kind of target.
//!
//! ```text
//!   operations ──► input ──► command   one process per operation          ──► standard output
//!                      └───► socket    a server; protocol: where an answer ends
//!                      └───► fuse      a file system's daemon; attend: beside one that is forked; release: unmounts at last
//!                      └───► answers   a program that reads operations itself and answers in a file
//! ```
//! A driver runs inside the recording, and again after every crash, so it keeps nothing of its own and starts nothing
//! before the first [`input`] of a run: up to there, one process can be forked for all runs.

pub mod address;
pub mod answers;
pub mod attend;
pub mod command;
pub mod driver;
pub mod error;
pub mod fuse;
pub mod input;
pub mod protocol;
pub mod release;
pub mod socket;
pub mod template;
