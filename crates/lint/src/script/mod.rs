//! Rules written in a script: [rhai](https://rhai.rs), one rule per file.
//!
//! `docs/rules/README.md` tells users what a script can see and do.

mod engine;
mod error;
mod rule;
mod view;

pub use error::ScriptError;
pub use rule::Script;
