//! The programs that the tests and benchmarks record: how they are found and how they are built.
//!
//! `conformance/` holds the suite that every recorder must pass alike, `lint/` the programs with misuse that `lint` must
//! find and their repaired twins, `crash/` the data structures that a power failure breaks and their correct twins, `ops/`
//! those that take operations and break silently, `solve/` bugs that only certain inputs reach, `pmdk/` what it takes to build the map examples that Debian's
//! `libpmemobj-dev` ships. Built files go where the caller says and are reused while their sources and command lines stay
//! the same.

pub mod blind;
mod compile;
mod cpu;
pub mod crash;
mod directives;
mod error;
mod expectation;
pub mod fs;
pub mod generated;
pub mod kmod;
pub mod pmdk;
pub mod pmdk_examples;
mod program;
mod skip;
pub mod solve;
mod threads;

pub use cpu::Cpu;
pub use directives::{Compare, Language};
pub use error::TargetError;
pub use expectation::Expectation;
pub use program::{Linkage, Program, conformance_programs, lint_programs};
pub use skip::{MUST_RUN, skip};
pub use threads::checks_at_once;
