//! Fuzzing: runs test cases (an input and a starting pool) under the probe with coverage, and keeps, mutates and checks those
//! that reach new PM code.
//!
//! ```text
//!   seeds ──► corpus ──► schedule ──► mutate ──► execute ──► coverage ──► feedback ──┐
//!               ▲  ▲                               │ image left                       │ new PM transitions
//!               │  └───────── images ◄─────────────┘                                  ▼
//!               └────────────────────────────────────────────────── check: lint, crash search ──► root causes
//! ```
//! After PMFuzz (ASPLOS 2021), §4. Departures: coverage comes from the binary, PM operations are instructions and not calls of
//! library functions, and every case that reaches new PM code is checked on the spot.

pub mod campaign;
pub mod case;
pub mod corpus;
pub mod coverage;
pub mod crashes;
pub mod examine;
pub mod execute;
pub mod image;
pub mod inputs;
pub mod journal;
pub mod random;
pub mod recorded;
pub mod select;
pub mod tails;
pub mod tree;
pub mod unreached;
