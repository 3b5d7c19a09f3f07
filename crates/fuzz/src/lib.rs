//! Workloads that nobody wrote: test cases (an input and a starting pool) are run under the probe with coverage, those that reach
//! new PM code are kept, mutated and checked.
//!
//! ```text
//!   seeds ──► corpus ──► schedule ──► mutate ──► execute ──► coverage ──► feedback ──┐
//!               ▲  ▲                               │ image left                       │ new PM transitions
//!               │  └───────── images ◄─────────────┘                                  ▼
//!               └────────────────────────────────────────────────── check: lint, crash search ──► root causes
//! ```
//! After PMFuzz (ASPLOS 2021), §4. Departures: coverage comes from the binary, PM operations are instructions and not calls of
//! library functions, and every case that reaches new PM code is checked on the spot.

pub mod coverage;
pub mod execute;
pub mod image;
