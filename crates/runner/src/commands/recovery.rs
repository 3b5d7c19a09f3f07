//! How a [`Runner`] recovers by a row of commands.

use std::ops::Range;

use crash::image::CrashImage;
use recover::limits::Limits;
use recover::report::RunReport;
use verdict::position::CrashPosition;

use super::row::{Commands, Row};
use crate::runner::{Runner, RunnerError};

impl Runner {
    /// What a process did to a state is taken for what it does to every state that it cannot tell from that one.
    pub fn set_equivalence(&mut self, on: bool) {
        if let Some(commands) = &mut self.commands {
            commands.remembers = on;
        }
    }

    /// Commands that were not run, because what they do to such a state was known.
    pub fn known_commands(&self) -> u64 {
        self.commands.as_ref().map_or(0, Commands::known)
    }

    /// The recovery as a row of commands, on what the slot shows; none if it is to be run otherwise.
    pub(crate) fn by_commands(
        &mut self,
        position: Option<CrashPosition>,
        image: &CrashImage<'_>,
    ) -> Result<Option<RunReport>, RunnerError> {
        let (Some(equivalence), Some(position)) = (&self.equivalence, position) else { return Ok(None) };
        let byte_ranges = equivalence.byte_ranges(position);
        let limits = self.timeout.limits(&self.plan.limits);
        let run = self.row(&byte_ranges, &limits)?;
        if run.is_none() && self.stale {
            self.show(image)?;
        }
        Ok(run)
    }

    /// The recovery with these operations as a row of commands, on what the slot shows. None if it must be run otherwise; it must be shown anew if
    /// it is [stale](Self::is_stale) then.
    pub(crate) fn row(
        &mut self,
        byte_ranges: &[Range<u64>],
        limits: &Limits,
    ) -> Result<Option<RunReport>, RunnerError> {
        let (Some(commands), Some(servers)) = (&mut self.commands, &mut self.servers) else { return Ok(None) };
        let Some(operations) = &self.plan.operations else { return Ok(None) };
        match commands.run(&mut self.slot, operations.workload.text(), byte_ranges, limits)? {
            Row::Ran(run, died_at) => {
                servers.recovery.broke_down_at = died_at;
                Ok(Some(*run))
            }
            Row::Inseparable => {
                self.stale = true;
                Ok(None)
            }
        }
    }
}
