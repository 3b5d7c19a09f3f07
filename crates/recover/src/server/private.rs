//! The private folders of a server.

use std::io;
use std::path::{Path, PathBuf};

use supervise::fork_server::ForkServer;

use crate::command::Command;
use crate::folders::Folders;
use crate::leftovers::{ForkPoint, Restored};
use crate::slot::Slot;

/// Directories that a run has for itself: those of the pools, and its working directory.
pub(super) fn directories(command: &Command, slot: &Slot) -> Vec<PathBuf> {
    let pools = slot.paths().filter_map(|(pool, _)| pool.parent().map(Path::to_owned));
    pools.chain([command.dir.clone()]).collect()
}

/// Folders that are mounted in a server's namespace, and how they were at its fork point.
#[derive(Debug)]
pub(crate) struct Private {
    folders: Folders,
    at_fork: ForkPoint,
}

impl Private {
    pub fn new(folders: Folders) -> Private {
        Private { folders, at_fork: ForkPoint::default() }
    }

    /// What is there now is what every run shall find.
    pub fn at_fork_point(&mut self) -> io::Result<()> {
        self.at_fork = ForkPoint::take(&self.folders)?;
        Ok(())
    }

    /// As [`at_fork_point`](Self::at_fork_point); how it was at the one before.
    pub fn at_next_fork_point(&mut self) -> io::Result<ForkPoint> {
        Ok(std::mem::replace(&mut self.at_fork, ForkPoint::take(&self.folders)?))
    }

    /// Back to a fork point before: takes away what was left since.
    pub fn back_to(&mut self, before: ForkPoint, engine: &ForkServer) -> Restored {
        self.at_fork = before;
        self.restore(engine)
    }

    /// Takes away what a run has left.
    pub fn restore(&self, engine: &ForkServer) -> Restored {
        // What cannot be looked at may be anything.
        self.at_fork.restore(&self.folders, &engine.root()).unwrap_or(Restored::No)
    }
}
