//! The HTML report: as text, and as people see it, in a real browser.

mod browser;
mod devtools;
mod pictures;
mod sample;
mod text;
