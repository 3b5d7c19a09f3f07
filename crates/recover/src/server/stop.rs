//! A run that stops in the middle of its input. Runs to come are forks of it: what they have in common was done once.

use std::sync::atomic::Ordering;

use persistency::line::LineId;
use supervise::fork_server::ServerState;
use supervise::limits::Limits;
use wire::recover::flag;

use super::report::noted;
use super::run::{ALLOWANCE, Running, Server, ServerError, system};
use crate::leftovers::{ForkPoint, Restored};
use crate::report::RunReport;
use crate::slot::Slot;

/// Where a run has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Where it should stop, with the lines that it has changed on the way.
    Stopped {
        dirtied: Vec<LineId>,
        /// It has made, deleted or resized pools.
        pools_replaced: bool,
    },
    /// To its end: it never got there, or cannot be forked there.
    Ended(Box<RunReport>),
}

/// A run that has stopped.
#[derive(Debug)]
pub(super) struct StoppedRun {
    /// Its maps.
    pub maps: Vec<u8>,
    /// How the private folders were where it began.
    before: ForkPoint,
}

impl Server {
    /// Runs up to this place in the input, in bytes. Each [`run`](Self::run) from then on is a fork from there, with what comes behind it in
    /// the input that it is given; it finds the pools as the slot holds them. Their output is without that of the run that stopped.
    pub fn run_to(&mut self, slot: &Slot, limits: &Limits, place: u64) -> Result<Arrival, ServerError> {
        self.leave()?;
        self.run_until(slot, limits, place)
    }

    /// Has a run stopped?
    pub fn is_stopped(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.stopped.is_some())
    }

    /// Ends the run that has stopped: runs are forks of the process at its first use of a pool again.
    pub fn leave(&mut self) -> Result<(), ServerError> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        if let Some(stopped) = running.stopped.take() {
            running.engine.leave();
            let is_back = running.engine.wait(ALLOWANCE) == ServerState::Done;
            // Otherwise the next run starts the command anew.
            if !is_back || running.private.back_to(stopped.before, &running.engine) == Restored::No {
                return Ok(());
            }
        }
        self.running = Some(running);
        Ok(())
    }

    pub(super) fn has_stopped(&mut self, mut running: Running) -> Result<Arrival, ServerError> {
        let noted = noted(&running.engine);
        let before = running.private.at_next_fork_point().map_err(system("look at the private folders"))?;
        running.stopped = Some(StoppedRun { maps: running.engine.maps().to_vec(), before });
        let flags = running.engine.recovery().flags.load(Ordering::Acquire);
        let pools_replaced = noted.files_changed || flags & flag::FULL != 0;
        self.running = Some(running);
        Ok(Arrival::Stopped { dirtied: noted.dirtied, pools_replaced })
    }
}
