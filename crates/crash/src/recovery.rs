//! What the search asks of whoever runs recoveries, and what it is told.

use std::error::Error;
use std::fmt;

use verdict::read::Read;
use verdict::verdict::Verdict;

use crate::image::CrashImage;

/// Runs recovery on crash images. Each worker has one of its own.
pub trait Recovery {
    /// Runs recovery on this image and judges it. A recovery that fails, hangs or crashes is an [`Observation`]; an
    /// error means that no verdict could be had at all, and ends the search.
    fn run(&mut self, image: &CrashImage<'_>) -> Result<Observation, RecoveryError>;
}

impl<R: Recovery> Recovery for &mut R {
    fn run(&mut self, image: &CrashImage<'_>) -> Result<Observation, RecoveryError> {
        (**self).run(image)
    }
}

/// What one run showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub verdict: Verdict,
    /// In order of first read; only what was read before the run itself overwrote it. None: the reads are not all
    /// known (several threads, a list that was cut), so nothing may be concluded about other states.
    pub reads: Option<Vec<Read>>,
}

/// No verdict could be had.
#[derive(Debug)]
pub struct RecoveryError(pub Box<dyn Error + Send + Sync>);

impl RecoveryError {
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        RecoveryError(error.into())
    }
}

/// The run was ended from outside, before it could be judged: the search ends as if its time were over.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the run was ended from outside")]
pub struct Cancelled;

impl RecoveryError {
    pub fn is_cancelled(&self) -> bool {
        self.0.is::<Cancelled>()
    }
}

impl fmt::Display for RecoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for RecoveryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
