//! The subcommands, one file each.

mod aside;
pub mod check;
mod code_path;
pub mod completions;
mod coverage_words;
pub mod crash;
mod crash_options;
mod crash_report;
pub mod debug;
pub mod demo;
pub mod doctor;
mod doctor_machine;
mod doctor_trials;
mod document;
pub mod explain;
mod gate;
mod html_report;
pub mod lint;
pub mod man;
mod progress;
pub mod record;
mod record_output;
mod record_summary;
pub mod replay;
pub mod report;
mod rule_options;
pub mod trace;
