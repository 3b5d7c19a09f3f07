//! Right or wrong.

use serde::{Deserialize, Serialize};

use crate::symptom::Symptom;

/// What the oracle said about a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Pass,
    Fail(Box<Symptom>),
}

impl Verdict {
    pub fn fail(symptom: Symptom) -> Verdict {
        Verdict::Fail(Box::new(symptom))
    }

    pub fn is_pass(&self) -> bool {
        *self == Verdict::Pass
    }

    /// Of a failure.
    pub fn symptom(&self) -> Option<&Symptom> {
        match self {
            Verdict::Pass => None,
            Verdict::Fail(symptom) => Some(symptom),
        }
    }

    /// The run had to be ended.
    pub fn is_endless(&self) -> bool {
        self.symptom().is_some_and(Symptom::is_endless)
    }

    /// Do both say the same? What differs between runs of one failure does not count.
    pub fn agrees(&self, other: &Verdict) -> bool {
        self == other || self.symptom().map(Symptom::key) == other.symptom().map(Symptom::key)
    }
}
