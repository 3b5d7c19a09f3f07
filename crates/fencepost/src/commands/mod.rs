//! The subcommands, one file each.

pub mod explain;
pub mod lint;
mod lint_config;
pub mod record;
mod record_output;
mod record_summary;
pub mod trace;
