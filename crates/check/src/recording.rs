//! Records a program for the analyses that follow: the trace, and the conditions that are likely to hold.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

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
    /// When the program had ended: all that comes after it counts for a budget.
    pub ended: Instant,
}

/// Runs a request; with `infer`, conditions are inferred from its flow.
pub fn record(mut request: Request, infer: bool, stop: &StopRequest) -> Result<Recorded, RecordError> {
    let inference = infer.then(|| Arc::new(Mutex::new(Inference::default())));
    request.options.flow = inference.as_ref().map(|inference| FlowHandle::new(Arc::clone(inference)));
    let recording = request.run(stop)?;
    let ended = Instant::now();
    let conditions = inference.map(|inference| inference.lock().unwrap_or_else(PoisonError::into_inner).conditions());
    Ok(Recorded { recording, conditions, ended })
}

impl Recorded {
    /// Puts the conditions beside the trace, for searches to come.
    pub fn save_conditions(&self, trace: &Path) -> Result<(), RecordError> {
        match &self.conditions {
            Some(conditions) => Ok(conditions.save(&infer::beside(trace))?),
            None => Ok(()),
        }
    }
}
