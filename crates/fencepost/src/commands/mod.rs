//! The subcommands, one file each.

pub mod check;
pub mod crash;
mod crash_options;
mod crash_report;
pub mod debug;
pub mod explain;
pub mod lint;
mod lint_config;
mod progress;
pub mod record;
mod record_output;
mod record_summary;
pub mod replay;
pub mod trace;
