//! Finds root causes: minimises failing crash states, classifies them, names the stores to blame and groups them.
//!
//! ```text
//!   failing state ──► point_evaluator   other states of the same point, run or remembered (verdict_cache)
//!                       │
//!                       ▼
//!                   minimise    the fewest stores that are missing, the fewest that are there
//!                       ▼
//!                   classify    durability, ordering, atomicity, recovery
//!                       ▼
//!                   repair      the flush and fence that make the state impossible, tried on the trace
//!                       ▼
//!                   explain     a finding, grouped by the code to blame
//! ```

mod ahead;
pub mod analyse;
pub mod assume;
pub mod classify;
pub mod clusters;
pub mod explain;
pub mod lvalue;
pub mod minimise;
mod orders;
pub mod point_evaluator;
mod program_order;
pub mod repair;
pub mod store_history;
mod storing_code;
pub mod verdict_cache;
