//! The subcommands, one file each; `options` and `output` have what several of them share.

pub mod check;
pub mod completions;
pub mod crash;
pub mod debug;
pub mod demo;
pub mod doctor;
pub mod drive;
pub mod explain;
pub mod explore;
pub mod fleet;
pub mod fs;
pub mod fuzz;
pub mod lint;
pub mod man;
pub mod ops;
mod options;
mod output;
pub mod record;
pub mod replay;
pub mod report;
mod select;
mod starting_pool;
mod stopping;
pub mod trace;
pub mod worker;
