//! Where units of work run: on threads of this process, or on machines that share a Redis server.
//!
//! ```text
//!   caller ───────► Dispatch ─┬─► Threads             one machine                        (dispatch, threads)
//!                             └─► redis::Coordinator  units in a stream of Redis, results in a hash
//!                                        ▲
//!                                        └── redis::Crew     takes units, renews its leases, acknowledges with results
//! ```
//!
//! A unit may be a run of a whole program ([`program`]), with folders as its input and its result ([`folder`]).
//!
//! This crate does not know what units mean: units and results are bytes.

pub mod blob;
pub mod dispatch;
pub mod folder;
pub mod program;
pub mod same;
pub mod text;
pub mod threads;

#[cfg(feature = "redis")]
pub mod redis;
