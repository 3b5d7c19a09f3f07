//! Groups of options that several subcommands have.

pub mod crash;
pub mod driver;
pub mod files;
pub mod fleet;
pub mod gate;
pub mod operation;
pub mod resume;
pub mod rule;
