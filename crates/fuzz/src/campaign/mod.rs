//! A campaign: cases are picked, mutated, run and judged until the budget is over; what is new is kept, and checked.
//!
//! Workers take [`Unit`](state::Unit)s of work from one [`State`](state::State) and give their results back to it: mutants of a case to
//! run, or a case to check. One list of root causes, one budget. What is fuzzed does not depend on what checks find, so that one
//! job with one seed makes the same corpus every time.
//!
//! In slices ([`rounds`]) the same is true of any number of jobs and machines: slices of a round know what was known at its beginning,
//! and what they found is put together in their order.

pub mod checks;
pub mod findings;
pub mod helper;
pub mod merge;
pub mod misbehaviour;
pub mod pick;
pub mod rounds;
pub mod run;
pub mod shorten;
pub mod slice;
pub mod snapshot;
pub mod state;
