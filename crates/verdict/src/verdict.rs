//! Right or wrong.

use serde::{Deserialize, Serialize};

use crate::symptom::Symptom;

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
