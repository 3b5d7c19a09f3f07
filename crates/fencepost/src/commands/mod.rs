//! The subcommands, one file each.

pub mod record;
mod record_output;
mod record_summary;
pub mod trace;
