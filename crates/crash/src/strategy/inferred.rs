//! *inferred*: states that break a likely-correctness condition (Witcher §4.3), as chosen beforehand over the whole run ([`crate::chosen`]).

use std::sync::Arc;

use infer::Conditions;
use persistency::states::CrashState;
use serde::{Deserialize, Serialize};

use super::spec::{Reach, Strategy};
use crate::view::PointView;

/// The conditions of a search. Searches with the same ones can be joined; only what they are compared by is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KnownConditions {
    digest: u64,
    #[serde(skip)]
    conditions: Option<Arc<Conditions>>,
}

impl KnownConditions {
    pub fn new(conditions: Conditions) -> Self {
        KnownConditions { digest: conditions.digest(), conditions: Some(Arc::new(conditions)) }
    }

    /// With hints that may be more or fewer the next time: searches are compared without them.
    pub fn with(&self, conditions: Conditions) -> Self {
        KnownConditions { conditions: Some(Arc::new(conditions)), ..self.clone() }
    }

    /// None if this was read from a journal.
    pub fn get(&self) -> Option<&Conditions> {
        self.conditions.as_deref()
    }
}

impl PartialEq for KnownConditions {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for KnownConditions {}

#[derive(Debug)]
pub struct Inferred {
    /// In reverse.
    states: Vec<CrashState>,
    is_partial: bool,
}

impl Inferred {
    /// Names nothing if nothing was chosen.
    pub fn new(view: &PointView<'_>, index: u64, times: u64) -> Self {
        let states = view.chosen().at(times, index).iter().rev().cloned().collect();
        Inferred { states, is_partial: view.chosen().is_partial(index) }
    }
}

impl Strategy for Inferred {
    fn next(&mut self, _: &PointView<'_>) -> Option<CrashState> {
        self.states.pop()
    }

    fn reach(&self) -> Reach {
        if self.is_partial { Reach::Capped } else { Reach::Done }
    }
}
