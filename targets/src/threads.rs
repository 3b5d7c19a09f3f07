//! How many checks of a suite run at once.

use std::thread::available_parallelism;

/// Twice the processors: a check often waits, for processes, mounts and time limits.
pub fn checks_at_once() -> usize {
    available_parallelism().map_or(2, usize::from) * 2
}
