//! What one recovery run did.

use std::path::PathBuf;
use std::time::Duration;

use persistency::line::LineId;
use verdict::end::End;
use verdict::read::Read;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    pub end: End,
    /// The first bytes, as many as the limits keep.
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// How long the standard output was at each read between two operations; empty without operations, and in a native run.
    pub boundaries: Vec<u32>,
    /// There was more output than was kept.
    pub output_cut: bool,
    /// Of all processes of the run.
    pub cpu: Duration,
    pub wall: Duration,
    /// In order of first read; none if they are not all known, as in a native run.
    pub reads: Option<Vec<Read>>,
    /// Lines that recovery wrote; empty in a native run.
    pub dirtied: Vec<LineId>,
    /// Recovery deleted a pool, put another file in its place, or changed its attributes.
    pub pools_replaced: bool,
    /// Recovery changed files beside the pools, or names; true in native mode, where nobody knows.
    pub tree_changed: bool,
    /// Files outside of the private folders that were changed, or opened for it: the next run sees what was done there. Empty in a
    /// native run.
    pub outside: Vec<PathBuf>,
}
