//! Reasons why other paths may exist although no branch is left to try.

use crate::session::Session;
use crate::solver::SolverStage;

/// Something that was not followed, or not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gap {
    /// Instructions and system calls that made input concrete.
    Concrete,
    /// Accesses at places that depend on the input, taken as they were or not known in all places.
    Addresses,
    /// Jumps whose targets are not all known.
    Jumps,
    /// Beyond the bounds on paths and expressions.
    Bounds,
    /// Branches that were forgotten: too many waited.
    Forgotten,
    /// Queries that no solver answered.
    Unanswered,
    /// Inputs that did not take the branch that they were made for, and branches that went another way than computed.
    Missed,
    /// Runs that were ended at their time limit.
    Stopped,
    /// Threads beside the first: they ran in one order of many.
    Threads,
}

impl Session {
    /// What keeps "every branch tried" from being true, with how often.
    pub fn gaps(&self) -> Vec<(Gap, u64)> {
        let (totals, explorer) = (&self.totals, &self.explorer);
        let unanswered = explorer.stages().counts.get(&SolverStage::Unknown).copied().unwrap_or(0);
        let list = [
            (Gap::Concrete, self.concrete.values().map(|&(count, _)| count).sum()),
            (Gap::Addresses, totals.pinned + totals.partial),
            (Gap::Jumps, explorer.open_jumps),
            (Gap::Bounds, totals.dropped + totals.cut + totals.too_many),
            (Gap::Forgotten, explorer.forgotten),
            (Gap::Unanswered, unanswered),
            (Gap::Missed, explorer.missed + totals.diverged),
            (Gap::Stopped, totals.stopped),
            (Gap::Threads, totals.more_threads),
        ];
        list.into_iter().filter(|&(_, count)| count > 0).collect()
    }
}
