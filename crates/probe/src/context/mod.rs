//! Call paths: the probe unwinds at the event, with the program's own `.eh_frame`, so calls and returns cost
//! nothing. Paths are cached and verified word by word (see `trampoline::record`).
//!
//! What it can miss: a path ends at code without unwind information (hand-written, generated at run time); such
//! paths are marked partial. What it can get wrong: nothing, if `.eh_frame` is correct.

pub mod cache;
pub mod numbers;
pub mod path;
pub mod rule;
pub mod unwind;
