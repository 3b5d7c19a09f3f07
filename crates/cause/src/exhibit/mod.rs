//! The exhibit of a finding: what a report shows beside its words, gathered from the trace and kept in the bundle.
//!
//! ```text
//!   window      which stretch of the trace, which lines        ─┐
//!   lanes       what became of their stores, event by event     ├─► gather ──► finding::exhibit::Exhibit ──► file
//!   difference  the failing bytes beside passing ones           │
//!   operations  the steps of the workload around the crash     ─┘
//!   places      names for the code, shared by all of them
//! ```

mod difference;
pub mod file;
pub mod gather;
mod lanes;
mod operations;
mod places;
mod window;
