//! Running `fencepost check` on a program of `targets/ops`, and what its findings must be.

mod bench;
mod verdict;

pub use bench::Bench;
pub use verdict::{check_silence, check_twin, check_variant};
