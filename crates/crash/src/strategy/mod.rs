//! Strategies: which crash states of a point are tried, one file each.

mod blind;
pub mod few_lines;
pub mod few_sectors;
pub mod guaranteed_only;
pub mod inferred;
mod listed;
pub mod program_order;
pub mod random;
pub mod spec;
pub mod violation;
pub mod visible;

pub use spec::{Reach, Strategy, StrategySpec};
