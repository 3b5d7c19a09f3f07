//! Where options come from: the command line, then the environment, then `fencepost.toml`, then the defaults.

mod file;
mod layers;
mod suggest;

pub use layers::parse;
pub use suggest::did_you_mean;
