//! Campaigns in Redis (6.2 or later) or Valkey.
//!
//! All keys of a campaign begin with `fencepost:{NAME}:`, see [`keys`](self::keys). Units wait in a stream, from which the
//! consumer group `workers` takes them. Results are in a hash, by the hash of their unit, so that a result counts once however
//! often a unit was performed. The coordinator keeps everything that it put there, and puts it there again if Redis loses it.

pub mod address;
pub mod coordinator;
pub mod crew;
mod heart;
mod keys;
pub mod link;
mod store;
pub mod survey;
mod units;

pub use store::StoreError;
