//! The backend itself.

use trace::{Outcome, PoolContent, TraceWriter};

use super::error::StepError;
use super::runner::Runner;
use super::session::Session;
use crate::recorder::{RecordOptions, Recorded, Recorder};
use crate::target::Target;

/// The reference recorder: see the module's own page for what it can and cannot do.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepRecorder;

impl Recorder for StepRecorder {
    type Error = StepError;

    fn name(&self) -> &'static str {
        "step"
    }

    fn record(&self, target: &Target, options: &RecordOptions, trace: TraceWriter) -> Result<Recorded, StepError> {
        if options.values.is_some() {
            return Err(StepError::Values);
        }
        let mut session = Session::new(trace, options.clone());
        let status = Runner::start(&mut session, target)?.run()?;
        if let Some(flow) = &session.flow {
            flow.finish();
        }
        let Session { mut trace, pools, book, .. } = session;
        let names = book.finals(&trace);
        trace.final_names(&names)?;
        let mut files = pools.into_files()?;
        let mut finals: Vec<_> = files.iter_mut().map(|(id, file)| (*id, file as &mut dyn PoolContent)).collect();
        let summary = trace.finish(&mut finals, Outcome::Ended(status))?;
        Ok(Recorded { status, summary })
    }
}
