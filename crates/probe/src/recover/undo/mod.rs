//! Puts the process of a run back to where it was forked, so that the next run needs no fork.
//!
//! Half of the price of a short run is that of a process: copying page tables, a fault for each page that is written, taking it all down
//! again. A run that has done nothing but what is known to be undone ([`allowed`], [`mappings`]) instead undoes it at its end ([`end`]): it
//! closes what it opened, unmaps what it mapped, and copies back the pages that it may have changed. Pages that no earlier run has changed
//! are found by what the kernel says of each page ([`pages`]); then the process ends as it would have, and the next fork keeps a copy of
//! them. So after a few runs a process keeps copies of all pages that runs change, and no page of it is ever copied by a fault again.
//!
//! What puts the process back has a stack and memory of its own ([`region`]), which are not put back.

pub mod allowed;
mod descriptors;
mod end;
pub mod mappings;
mod pages;
mod region;
mod switch;

pub use end::{begin, checkpoint, cpu_limit, end};
pub use region::{ActionBefore, action_changes};
