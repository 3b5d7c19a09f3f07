//! Gathers the evidence of a finding.

use crash::checkpoints::PlainWalks;
use crash::image::CrashImage;
use crash::walk::WalkError;
use finding::blame::Libraries;
use finding::evidence::{Evidence, VERSION};
use finding::finding::Finding;
use finding::source::Excerpt;
use trace::{ReadError, TraceReader};

use super::places::Places;
use super::{difference, lanes, operations};
use cause::analyse::RootCause;
use persistency::point::PointError;

/// Lines of source before and after a location.
const AROUND: u32 = 4;

/// A confirmed finding, and where it comes from.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub reader: &'a TraceReader,
    pub walks: &'a PlainWalks<'a>,
    pub cause: &'a RootCause,
    pub finding: &'a Finding,
    pub libraries: &'a Libraries,
    /// The input of an operation, if that is known.
    pub operation: &'a dyn Fn(u64) -> Option<String>,
}

impl std::fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("cause", self.cause).field("finding", self.finding).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    State(#[from] PointError),
}

impl Case<'_> {
    /// `passes` runs recovery on an image; it is asked a few times at most.
    pub fn evidence(&self, passes: &mut dyn FnMut(&CrashImage<'_>) -> bool) -> Result<Evidence, EvidenceError> {
        let Case { reader, walks, cause, finding, .. } = *self;
        let mut places = Places::new(reader.tables(), self.libraries);
        let mut compared = None;
        let timeline = lanes::timeline(reader, walks, cause, &mut places, &mut |walk| {
            compared = difference::at_crash(&walk.view(), cause, passes)?;
            Ok(())
        })?;
        let compared = match compared {
            Some(compared) => compared,
            None => difference::before(reader, walks, cause, passes)?,
        };
        let difference = compared.named(reader, &timeline);
        let mut excerpts: Vec<Excerpt> = Vec::new();
        for location in &finding.locations {
            let Some((file, line)) = location.file.as_ref().zip(location.line) else { continue };
            excerpts.extend(places.sources.excerpt(file, line, AROUND).filter(|new| !excerpts.contains(new)));
        }
        Ok(Evidence {
            fencepost_evidence: VERSION,
            finding: finding.clone(),
            excerpts,
            timeline,
            difference,
            operations: operations::around(reader, cause.point.at, self.operation)?,
        })
    }
}
