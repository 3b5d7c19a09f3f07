//! Chooses crash states: where power may fail, what it could leave, and which of these states need a recovery run.
//!
//! ```text
//!   trace ─► Survey      all crash points, by failure point            (survey, points, rounds)
//!     │        │
//!     ▼        ▼
//!    Walk ─► PointView   dirty lines and guaranteed image at a point   (walk, checkpoints, view, image, changes)
//!              │
//!              ▼ Strategy      names crash states                      (strategy/)
//!              ▼ ReadTree      decided by what recovery read before?   (read_tree/)
//!              ▼ Recovery      else run it: a trait, given from outside (recovery)
//!           Search ─► Found    outcomes per point, coverage            (search, worker, judge, outcome, journal)
//! ```
//!
//! Knows nothing of processes or of why a recovery fails.

pub mod assignment;
pub mod assumed;
pub mod changes;
pub mod checkpoints;
pub mod chosen;
pub mod elsewhere;
pub mod image;
pub mod journal;
mod judge;
mod kinds;
mod names;
mod newest;
pub mod outcome;
pub mod points;
pub mod read_tree;
pub mod recovery;
pub mod rounds;
pub mod search;
mod stages;
pub mod strategy;
pub mod survey;
pub mod view;
pub mod walk;
mod worker;
