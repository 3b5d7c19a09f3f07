//! Where units of work run: on threads of this process, or on machines that share a Redis server.
//!
//! ```text
//!   who has work ─► Dispatch ─┬─► Threads             one machine                        (dispatch, threads)
//!                             └─► redis::Coordinator  units in a stream of Redis, results in a hash
//!                                        ▲
//!                                        └── redis::Crew     takes units, renews its leases, acknowledges with results
//! ```
//!
//! Knows nothing of what a unit is about: to it, units and results are bytes.

pub mod blob;
pub mod dispatch;
pub mod text;
pub mod threads;

#[cfg(feature = "redis")]
pub mod redis;
