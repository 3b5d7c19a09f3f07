//! Every rule on hand-made event streams: one that breaks it, and nothing else, and its repair, which is clean.

mod durability;
mod performance;
mod pmdk;
mod program;
mod script;
mod suspicion;
