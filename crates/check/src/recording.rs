//! Records a program for the analyses that follow: the trace, and the conditions that are likely to hold.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use infer::{Conditions, ConditionsError, Inference};
use record::flow::FlowHandle;
use record::recording::Recording;
use record::request::{Failed, Request};
use record::stop::StopRequest;

/// There is no recording to work with.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Failed(#[from] Failed),
    #[error(transparent)]
    Conditions(#[from] ConditionsError),
}

/// A recording, and what follows from it.
#[derive(Debug)]
pub struct Recorded {
    pub recording: Recording,
    /// That are likely to hold, if they were asked for.
    pub conditions: Option<Conditions>,
    /// When the program was started, and when it had ended.
    pub begun: Instant,
    pub ended: Instant,
}

/// Runs a request; with `infer`, conditions are inferred from its flow.
pub fn record(mut request: Request, infer: bool, stop: &StopRequest) -> Result<Recorded, RecordError> {
    let inference = infer.then(|| Arc::new(Mutex::new(Inference::default())));
    request.options.flow = inference.as_ref().map(|inference| FlowHandle::new(Arc::clone(inference)));
    let begun = Instant::now();
    let recording = request.run(stop)?;
    let ended = Instant::now();
    let conditions = inference.map(|inference| inference.lock().unwrap_or_else(PoisonError::into_inner).conditions());
    Ok(Recorded { recording, conditions, begun, ended })
}

impl Recorded {
    /// From when on a budget counts: from the start of the recording, but half of it is left for what follows.
    pub fn budget_begins(&self, budget: Option<Duration>) -> Instant {
        budget_begins(self.begun, self.ended, budget)
    }

    /// Puts the conditions beside the trace, for searches to come.
    pub fn save_conditions(&self, trace: &Path) -> Result<(), RecordError> {
        match &self.conditions {
            Some(conditions) => Ok(conditions.save(&infer::beside(trace))?),
            None => Ok(()),
        }
    }
}

fn budget_begins(begun: Instant, ended: Instant, budget: Option<Duration>) -> Instant {
    let most = budget.map_or(Duration::ZERO, |budget| budget / 2);
    ended.checked_sub(most).map_or(begun, |earliest| begun.max(earliest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_counts_for_at_most_half_of_a_budget() {
        let begun = Instant::now();
        let budget = Duration::from_secs(60);
        let left = |recorded: u64| {
            let ended = begun + Duration::from_secs(recorded);
            (budget_begins(begun, ended, Some(budget)) + budget - ended).as_secs()
        };
        assert_eq!([0, 10, 30, 31, 200].map(left), [60, 50, 30, 30, 30]);
        let ended = begun + Duration::from_secs(5);
        assert_eq!(budget_begins(begun, ended, Some(Duration::ZERO)), ended);
    }
}
