//! What several subcommands print and write.

pub mod code_path;
pub mod coverage_words;
pub mod document;
pub mod findings;
pub mod html;
pub mod progress;
mod progress_words;
