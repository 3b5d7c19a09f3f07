//! `cargo xtask bench record`, what recording costs, in one table; `cargo xtask bench crash`, what recoveries cost;
//! `cargo xtask bench infer`, how few states break an inferred condition; `cargo xtask bench compare`, all beside the peers;
//! `cargo xtask bench fleet` and `fleet-scale`, many machines; `cargo xtask bench fuzz`, PM transitions beside AFL++; `cargo xtask bench cover`, what coverage costs; `cargo xtask bench solve`, searching for inputs with a solver.

mod chore;
pub(crate) mod compare;
mod cover;
pub(crate) mod cpu_group;
mod crash;
mod crash_mumak;
mod crash_pools;
mod crash_run;
mod crash_small;
mod fleet;
mod fleet_scale;
mod fuzz;
mod infer;
mod infer_run;
mod infer_table;
mod infer_windows;
pub(crate) mod measure;
mod runner;
mod solve;
mod table;
mod workload;

pub use chore::RecordBench;
pub use compare::CompareBench;
pub use cover::CoverBench;
pub use crash::CrashBench;
pub use fleet::FleetBench;
pub use fleet_scale::ScaleBench;
pub use fuzz::{FuzzBench, MAP_GRAMMAR};
pub use infer::InferBench;
pub use solve::SolveBench;
