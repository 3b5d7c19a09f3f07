//! `cargo xtask bench record`: what recording costs, in one table.

mod chore;
pub(crate) mod measure;
mod runner;
mod table;
mod workload;

pub use chore::RecordBench;
