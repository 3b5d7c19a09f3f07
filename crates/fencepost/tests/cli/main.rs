//! The command line as users meet it: help, options, messages, exit codes, formats, and pages that are followed command by command.

#[expect(dead_code, reason = "each test binary uses its own part")]
#[path = "../cli_support/mod.rs"]
mod cli_support;
#[expect(dead_code, reason = "each test binary uses its own part")]
#[path = "../crash_support/mod.rs"]
mod crash_support;
#[path = "../schema_support/mod.rs"]
mod schema_support;

mod baseline;
mod config;
mod demo;
mod doctor;
mod error_paths;
mod exit;
mod formats;
mod help;
mod input;
mod lint;
mod record;
mod report;
mod schema;
mod tutorial;
