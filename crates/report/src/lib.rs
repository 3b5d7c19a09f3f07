//! How findings are shown: one file per format.

pub mod baseline;
pub mod html;
pub mod human;
pub mod json;
pub mod junit;
pub mod number;
mod place;
pub mod sarif;
