//! Which changes of files and names a power failure leaves: rules over the file events of a trace.
//!
//! A rule says which [`FileTree`] is certain at a place of the trace. One rule is there:
//!
//! - [`ProgramOrder`]: every change is durable when its call returns, in the order of the trace. So a crash leaves all changes before it
//!   and none after it. A file system on PM that is mounted synchronously does this (NOVA; ext4 with DAX does not promise it).
//!
//! # What it can miss
//! - Programs that forget `fsync` of a file or of its directory: file systems may lose or reorder what was not synced (Pillai et al., *All
//!   File Systems Are Not Created Equal*, OSDI 2014; Pathfinder, OSDI 2024). [`FileEvent::Sync`] is in the trace for a rule that knows this: it
//!   would implement [`FileRule`] and offer several trees per crash point.
//! - A crash in the middle of one `write`: the whole call is in the file or nothing of it.
//!
//! # What it can report wrongly
//! - Nothing that a program which syncs what it relies on would not show: the tree is one that every file system may leave.
//!
//! Writes to a file that is a pool, and its length, follow the model of the pool's stores, not this.

use std::fmt;
use std::sync::Arc;

use trace::event::FileEvent;
use trace::{FileTree, OutOfRange, Tables};

/// Which files and names are certain, along a trace.
pub trait FileRule: fmt::Debug + Send {
    /// Takes the next change.
    fn apply(&mut self, change: &FileEvent<'_>, tables: &Tables) -> Result<(), OutOfRange>;

    /// The same rule at the same place, for a walk of its own.
    fn copy(&self) -> Box<dyn FileRule>;

    /// What a power failure here leaves.
    fn certain(&self) -> &FileTree;
}

/// A change is durable when its call returns.
#[derive(Clone, Debug)]
pub struct ProgramOrder {
    /// Copies share it until the next change.
    tree: Arc<FileTree>,
}

impl ProgramOrder {
    /// From the files as they were before the recording.
    pub fn new(initial: FileTree) -> ProgramOrder {
        ProgramOrder { tree: Arc::new(initial) }
    }
}

impl FileRule for ProgramOrder {
    fn apply(&mut self, change: &FileEvent<'_>, tables: &Tables) -> Result<(), OutOfRange> {
        Arc::make_mut(&mut self.tree).apply(change, tables)
    }

    fn copy(&self) -> Box<dyn FileRule> {
        Box::new(self.clone())
    }

    fn certain(&self) -> &FileTree {
        &self.tree
    }
}

/// The rules that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileRuleKind {
    #[default]
    ProgramOrder,
}

impl FileRuleKind {
    pub fn build(self, initial: FileTree) -> Box<dyn FileRule> {
        match self {
            FileRuleKind::ProgramOrder => Box::new(ProgramOrder::new(initial)),
        }
    }
}
