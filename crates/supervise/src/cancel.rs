//! Ends runs from outside before they are done: the user wants to stop, or the budget of the whole command is spent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whoever waits for a process looks at it every few milliseconds. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Every run that is under way ends, and none is begun any more.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
