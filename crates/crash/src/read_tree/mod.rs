//! What recovery has shown so far: states that agree in all that it read need not be run.

mod cache;
mod chunks;
mod intern;
mod known_runs;
mod tree;

pub use cache::ReadTreeCache;
pub use known_runs::KnownRuns;
pub use tree::{Decided, Inserted, ReadTree, ReadTreeLimits};
