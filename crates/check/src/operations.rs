//! Operations of the workload: those that the program is given line by line, and those that it reads itself.

use operation::boundaries::{BoundarySource, OperationBoundaries};
use operation::equivalence::Asking;
use operation::resumed::Templates;
use operation::workload::{Workload, WorkloadError};
use trace::{ReadError, TraceReader};
use verdict::position::CrashPosition;

/// Which operations drive the program.
#[derive(Clone, Debug)]
pub enum Operations {
    /// It reads them from its standard input, one line each, and answers each before it reads the next.
    Fed(Workload),
    /// It reads them itself.
    Own(OwnOperations),
}

/// Operations that the program reads itself, and how it is run after a crash.
#[derive(Clone, Debug)]
pub struct OwnOperations {
    /// Where operations begin and end in the recording.
    pub boundaries: BoundarySource,
    pub templates: Templates,
    /// What they are, one line each, to be shown.
    pub text: Option<Vec<u8>>,
}

/// What they mean for a recording.
#[derive(Debug)]
pub struct Resumed {
    pub workload: Workload,
    pub asking: Asking,
    pub boundaries: BoundarySource,
    /// The words of the command before the first operation.
    pub recovery: Vec<String>,
}

/// The operations do not fit the recording.
#[derive(Debug, thiserror::Error)]
pub enum OperationsError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(
        "no operation was seen: the program did not call `{0}`; is it the name of a function in it, and was that not inlined?"
    )]
    NoCall(String),
    #[error("no operation was seen: the program met no mark; was it built with marks/fencepost.h or fencepost-marks?")]
    NoMark,
    #[error("the program began {began} operations, but --ops has {lines} lines; operations and lines must be the same")]
    Count { began: usize, lines: usize },
}

impl Operations {
    /// What the program gets on its standard input.
    pub fn fed(&self) -> Option<&Workload> {
        match self {
            Operations::Fed(workload) => Some(workload),
            Operations::Own(_) => None,
        }
    }

    /// It is known what they are, and not just how many.
    pub(crate) fn are_known(&self) -> bool {
        match self {
            Operations::Fed(_) => true,
            Operations::Own(own) => own.text.is_some(),
        }
    }

    /// Functions that the recording must watch.
    pub(crate) fn watches(&self) -> impl Iterator<Item = String> {
        let calls = match self {
            Operations::Own(OwnOperations { boundaries: BoundarySource::Calls { begin, end }, .. }) => {
                vec![Some(begin.clone()), end.clone()]
            }
            _ => Vec::new(),
        };
        calls.into_iter().flatten()
    }

    /// What they mean for this recording, if the program reads them itself.
    pub(crate) fn resumed(&self, reader: &TraceReader) -> Result<Option<Resumed>, OperationsError> {
        let Operations::Own(OwnOperations { boundaries, templates, text }) = self else { return Ok(None) };
        let began = OperationBoundaries::of(reader, boundaries)?.count();
        if began == 0 {
            return Err(match boundaries {
                BoundarySource::Calls { begin, .. } => OperationsError::NoCall(begin.clone()),
                BoundarySource::Events => OperationsError::NoMark,
            });
        }
        let workload = Workload::unread(began, text.as_deref())?;
        if workload.count() != began {
            return Err(OperationsError::Count { began, lines: workload.count() });
        }
        let pool = reader.tables().pools.first().map(|pool| pool.info.path.clone()).unwrap_or_default();
        let recovery = templates.resume(CrashPosition::Before, pool.as_ref(), began);
        let asking = Asking::Resumed(templates.clone());
        Ok(Some(Resumed { workload, asking, boundaries: boundaries.clone(), recovery }))
    }
}
