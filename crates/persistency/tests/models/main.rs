//! The models: litmus tests, effects, and a machine that tries everything.

#[path = "../brute_force/mod.rs"]
mod brute_force;
#[path = "../litmus/mod.rs"]
mod litmus;

mod effects;
