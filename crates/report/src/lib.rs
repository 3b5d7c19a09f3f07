//! Renders findings: one file per format, and one folder (`words`) that turns data into English.

pub mod baseline;
pub mod html;
pub mod human;
pub mod json;
pub mod junit;
pub mod number;
mod place;
pub mod sarif;
pub mod words;
