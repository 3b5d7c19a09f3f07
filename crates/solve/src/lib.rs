//! Finds inputs with a solver: concolic execution of an unmodified binary, directed at code that changes persistent memory.
//!
//! ```text
//!   input ─► Runner         runs it in values mode                    (run, input)
//!              │ Follow     blocks, threads, processes                (follow, channel, compile)
//!              ▼ Machine    what depends on the input gets expressions (machine, logged, memory, constant, frame, flags, semantics)
//!             Path          conditions that this run met              (path; expressions: expr, simplify, eval, support)
//!              │
//!              ▼ Explorer   which branch next                         (explore, executed, graph, target, reach, place)
//!             Stages        an input that takes its other side        (solver, invert, interval, blast, smt)
//! ```
//!
//! `session` explores alone (`gap`: what it left out); `campaign` helps a fuzzing campaign when mutation is stuck.
//!
//! Source: I. Neal et al., "Agamotto", OSDI 2020, §4 and §5. Deviations are in `machine.rs`, [`graph`] and docs/design/solving.md.

pub mod blast;
pub mod campaign;
mod channel;
mod compile;
mod constant;
pub mod eval;
mod executed;
pub mod explore;
pub mod expr;
pub mod flags;
pub mod follow;
pub mod frame;
pub mod gap;
pub mod graph;
pub mod input;
pub mod interval;
pub mod invert;
mod logged;
mod machine;
mod memory;
pub mod path;
pub mod place;
pub mod reach;
pub mod run;
pub mod semantics;
pub mod session;
mod simplify;
pub mod smt;
pub mod solver;
mod support;
mod target;
