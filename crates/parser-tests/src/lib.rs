//! A small fuzzer for the test suite: whatever a file holds, a parser answers or refuses; it does not panic.
//!
//! libFuzzer needs a nightly compiler and an open-ended campaign. This crate needs neither: [`hammer::hammer`] alters the files of a corpus in ways that
//! depend only on the parser's name and the number of the input, so every run tries the same inputs, and a failure names the one to
//! try again. `FENCEPOST_FUZZ_INPUTS` asks for more inputs than the test suite has time for, `FENCEPOST_FUZZ_SECONDS` for as many as fit.

pub mod hammer;
pub mod mutate;
