//! Records a program for the analyses that follow: the trace, and beside it the conditions that are likely to hold.

use std::sync::{Arc, Mutex, PoisonError};

use infer::{ConditionsError, Inference};
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

/// Runs a request. With `infer`, the conditions that follow from its flow go beside the trace.
pub fn record(mut request: Request, infer: bool, stop: &StopRequest) -> Result<Recording, RecordError> {
    let inference = infer.then(|| Arc::new(Mutex::new(Inference::default())));
    request.options.flow = inference.as_ref().map(|inference| FlowHandle::new(Arc::clone(inference)));
    let beside = infer::beside(&request.trace);
    let recording = request.run(stop)?;
    if let Some(inference) = inference {
        inference.lock().unwrap_or_else(PoisonError::into_inner).conditions().save(&beside)?;
    }
    Ok(recording)
}
