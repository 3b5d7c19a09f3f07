//! A reference run: the command runs its operations without a crash, and waits at every boundary between two of them. There it can
//! be forked, to see what it would answer if other operations came next. Nothing that a fork does reaches the process
//! that goes on: what came before is never run again.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;

use supervise::fork_server::{ForkServer, ServerState};
use wire::recover::reference;

use super::private::Private;
use super::report::{end, noted, report};
use super::run::{ALLOWANCE, Server, ServerError, set_limits, system, wait_status};
use super::watch::BETWEEN_LOOKS;
use crate::leftovers::Restored;
use crate::report::RunReport;
use crate::slot::Slot;
use supervise::limits::Limits;
use verdict::end::End;

/// Where the process of a reference run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceStep {
    /// At the next boundary, with what it wrote on the way.
    Boundary(Vec<u8>),
    /// It has ended, and wrote this before.
    Ended(End, Vec<u8>),
}

/// The command between two operations.
#[derive(Debug)]
pub struct ReferenceRun<'s> {
    server: &'s mut Server,
    engine: ForkServer,
    private: Private,
    limits: Limits,
    operations: Vec<Range<u64>>,
}

impl Server {
    /// Starts the command on what the slot holds, up to the boundary before the first of these operations; with what it wrote.
    /// `ends`: how its forks end is of interest, not only what they answer.
    pub fn reference_run(
        &mut self,
        slot: &Slot,
        operations: Vec<Range<u64>>,
        limits: &Limits,
        ends: bool,
    ) -> Result<(ReferenceRun<'_>, ReferenceStep), ServerError> {
        let (engine, private) = self.launch(if ends { reference::ENDS } else { reference::ANSWERS })?;
        slot.tell(&engine);
        set_limits(&engine, limits);
        engine.give(&operations);
        let mut run = ReferenceRun { server: self, engine, private, limits: limits.clone(), operations };
        let step = run.arrive()?;
        Ok((run, step))
    }
}

impl ReferenceRun<'_> {
    /// What a process that is here now answers to these operations.
    pub fn branch(&mut self, operations: &[Range<u64>]) -> Result<RunReport, ServerError> {
        let started = Instant::now();
        self.server.clear_output()?;
        self.private.at_fork_point().map_err(system("look at the private folders"))?;
        self.engine.give(operations);
        self.engine.ask();
        let stage = self.wait()?;
        self.refusal()?;
        let end = match stage {
            ServerState::Done => end(&self.engine, self.engine.recovery().status.load(Ordering::Acquire), &self.limits),
            ServerState::Late => End::Hung,
            _ => return Err(ServerError::Silent),
        };
        let report = report(&self.engine, end, &noted(&self.engine), started.elapsed());
        let report = self.server.with_output(report, &self.limits)?;
        if stage == ServerState::Done && self.private.restore(&self.engine) == Restored::No {
            let text =
                "an operation changes or deletes files beside the pools, which a reference run cannot keep apart";
            return Err(ServerError::Refused(text.to_owned()));
        }
        Ok(report)
    }

    /// The process itself takes the next operation.
    pub fn go_on(&mut self) -> Result<ReferenceStep, ServerError> {
        self.server.clear_output()?;
        self.engine.give(&self.operations);
        self.engine.go_on();
        self.arrive()
    }

    fn wait(&self) -> Result<ServerState, ServerError> {
        let until = Instant::now() + self.limits.wall + ALLOWANCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let stage = self.engine.wait(BETWEEN_LOOKS.min(left));
            if stage != ServerState::Late || left.is_zero() {
                return Ok(stage);
            }
            if self.server.cancel.is_cancelled() {
                return Err(ServerError::Cancelled);
            }
        }
    }

    fn arrive(&mut self) -> Result<ReferenceStep, ServerError> {
        let stage = self.wait()?;
        if let Some(error) = self.engine.start_error() {
            return Err(error.into());
        }
        self.refusal()?;
        let end = match stage {
            ServerState::Boundary => None,
            ServerState::Ended(status) => Some(end(&self.engine, wait_status(status), &self.limits)),
            ServerState::Late => Some(End::Hung),
            ServerState::Ready | ServerState::Once | ServerState::Done | ServerState::Stopped => {
                return Err(ServerError::Silent);
            }
        };
        let output = self.server.written(&self.limits)?;
        Ok(match end {
            None => ReferenceStep::Boundary(output),
            Some(end) => ReferenceStep::Ended(end, output),
        })
    }

    fn refusal(&self) -> Result<(), ServerError> {
        match self.engine.refusals().into_iter().next() {
            Some(text) => Err(ServerError::Refused(text)),
            None => Ok(()),
        }
    }
}
