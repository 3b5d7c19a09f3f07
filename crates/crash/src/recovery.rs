//! What the search asks of whoever runs recoveries, and what it is told.

use std::error::Error;
use std::fmt;

use persistency::line::LineId;
use serde::{Deserialize, Serialize};
use trace::event::PoolId;

use crate::image::CrashImage;

/// Runs recovery on crash images. Each worker has one of its own.
pub trait Recovery {
    /// Runs recovery on this image and judges it. A recovery that fails, hangs or crashes is an [`Observation`]; an
    /// error means that no verdict could be had at all, and ends the search.
    fn run(&mut self, image: &CrashImage<'_>) -> Result<Observation, RecoveryError>;
}

/// What one run showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub verdict: Verdict,
    /// In order of first read; only what was read before the run itself overwrote it. None: the reads are not all
    /// known (several threads, a list that was cut), so nothing may be concluded about other states.
    pub reads: Option<Vec<Read>>,
}

/// Something of an image that recovery looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Read {
    Line(LineId),
    Length(PoolId),
}

/// What the oracle said about a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Verdict {
    pub pass: bool,
    pub symptom: Symptom,
}

impl Verdict {
    pub fn pass() -> Self {
        Verdict { pass: true, symptom: Symptom::default() }
    }

    pub fn fail(key: impl Into<String>, text: impl Into<String>) -> Self {
        Verdict { pass: false, symptom: Symptom { key: key.into(), text: text.into() } }
    }

    /// Do both say the same? The text is for people and may name what differs between runs.
    pub fn agrees(&self, other: &Verdict) -> bool {
        self.pass == other.pass && self.symptom.key == other.symptom.key
    }
}

/// How a failure showed. The search only carries it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Symptom {
    /// Short, the same for the same failure: `exit 1`, `signal 11`, `hang`.
    pub key: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// No verdict could be had.
#[derive(Debug)]
pub struct RecoveryError(pub Box<dyn Error + Send + Sync>);

impl RecoveryError {
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        RecoveryError(error.into())
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
