//! Keeps findings: their bundles on disk, and the evidence that a report shows.
//!
//! ```text
//!   window      which part of the trace, which lines           ─┐
//!   lanes       what became of their stores, event by event     ├─► gather ──► finding::evidence::Evidence ──► file
//!   difference  the failing bytes beside passing ones           │
//!   operations  the steps of the workload around the crash     ─┘
//!   places      names for the code, shared by all of them
//!   bundle      the crash image and all that is needed to run recovery on it again
//! ```

pub mod bundle;
pub mod bundled;
mod difference;
pub mod file;
pub mod gather;
mod lanes;
mod operations;
mod places;
mod window;
