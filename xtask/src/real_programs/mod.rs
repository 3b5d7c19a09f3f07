//! `cargo xtask real-programs`: programs as Debian ships them behave the same under the recorder as natively.

mod case;
mod chore;
mod inputs;
mod list;
mod outcome;
mod packages;

pub use chore::RealPrograms;
