//! `cargo xtask bench compare`: Fencepost beside the peers that Debian ships, on the same programs.

mod chore;
mod costs;
mod found;
mod peers;
pub(crate) mod plot;
mod pools;
mod run;
mod way;

pub use chore::CompareBench;
