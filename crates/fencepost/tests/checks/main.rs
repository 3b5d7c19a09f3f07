//! `check`, `crash`, `replay`, `debug`, `infer` and `fs check` on small programs.

#[expect(dead_code, reason = "each test binary uses its own part")]
#[path = "../cli_support/mod.rs"]
mod cli_support;
#[path = "../crash_support/mod.rs"]
mod crash_support;

mod crash;
mod found;
mod fs_failures;
mod infer;
mod lint_pmdk;
mod many_bugs;
mod ops_answers;
mod ops_cli;
mod ops_commands;
mod ops_luck;
mod ops_reference;
mod ops_servers;
mod ops_windows;
mod stopping;
