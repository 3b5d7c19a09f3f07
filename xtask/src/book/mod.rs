//! `cargo xtask book`: the documentation as a small static book, in `target/book`. It works from `file://`.
//!
//! `docs/SUMMARY.md` is the side bar. Pages keep their paths in the repository, so that the links between them stay as they are;
//! what pages link to comes along. The tests of `check` are those of the documentation, too.

mod chore;
#[cfg(test)]
mod limit_tests;
mod links;
mod page;
mod site;
#[cfg(test)]
mod source_tests;
mod summary;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod word_tests;

pub use chore::Book;
