//! `explore`, `fuzz` and `fleet`: searches that try many inputs, or use many machines.

#[expect(dead_code, reason = "each test binary uses its own part")]
#[path = "../cli_support/mod.rs"]
mod cli_support;
#[expect(dead_code, reason = "each test binary uses its own part")]
#[path = "../crash_support/mod.rs"]
mod crash_support;
#[path = "../explore_support/mod.rs"]
mod explore_support;
#[path = "../schema_support/mod.rs"]
mod schema_support;

mod explore;
mod fleet;
mod fleet_runs;
mod fuzz_cli;
mod fuzz_ways;
