//! The solver and its search: what instructions compute is what the processor does, and what is said of paths is true.

mod explorer;
mod machine;
mod processor;
mod search;
