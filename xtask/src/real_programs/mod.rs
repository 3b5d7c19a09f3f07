//! `cargo xtask real-programs`: programs as Debian ships them behave the same under the recorder as natively.

mod case;
mod chore;
mod inputs;
mod list;
#[rustfmt::skip]
mod list_languages;
#[rustfmt::skip]
mod list_tools;
mod outcome;
mod packages;

pub use chore::RealPrograms;
