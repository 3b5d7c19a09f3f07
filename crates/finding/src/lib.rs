//! Findings: one root cause each, with the code to blame, however often it occurred and on however many call paths.
//!
//! ```text
//!   Sighting (rule, instruction, call path, count)  ──►  group  ──►  Finding (rule, source line, call paths beneath)
//! ```
//!
//! An analysis counts sightings while it reads a trace, without a name for anything. [`group`](group::group) names
//! the code, finds the frame to [`blame`] and joins what has the same cause; [`suppress`] removes what is intended.

pub mod blame;
pub mod evidence;
pub mod failure;
pub mod finding;
pub mod glob;
pub mod group;
pub mod merge;
pub mod note;
pub mod pmdk;
pub mod severity;
pub mod site;
pub mod source;
pub mod suppress;
