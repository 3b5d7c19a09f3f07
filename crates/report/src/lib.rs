//! How findings are shown: one file per format.

pub mod baseline;
pub mod html;
pub mod human;
pub mod json;
pub mod junit;
mod place;
pub mod sarif;
