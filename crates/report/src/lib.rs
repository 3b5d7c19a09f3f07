//! How findings are shown: one file per format.

pub mod human;
pub mod json;
mod source;
