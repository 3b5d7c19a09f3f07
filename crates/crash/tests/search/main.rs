//! The search on random traces with random recoveries, against slow and obviously right versions of itself.

#[path = "../independent/mod.rs"]
mod independent;

mod checkpoints;
mod elsewhere;
mod endless;
mod equivalence;
mod images;
mod inferred;
mod joining;
mod journals;
mod messages;
mod points;
mod recoveries;
mod setup;
mod traces;
