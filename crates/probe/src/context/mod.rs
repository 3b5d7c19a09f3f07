//! Call paths: found by unwinding with the program's own `.eh_frame` at the event, so that calls and returns cost
//! nothing. Cached and verified word by word (see `trampoline::record`).
//!
//! What it can miss: code without unwind information (hand-written, generated at run time) ends the path there; such
//! paths are marked partial. What it can get wrong: nothing that correct `.eh_frame` gets right.

pub mod cache;
pub mod path;
pub mod rule;
