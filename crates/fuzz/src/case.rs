//! A test case: an input and the pool it begins with.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::coverage::Priority;
use crate::image::ImageId;

/// A case, by the order in which they were kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaseId(pub u32);

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}", self.0)
    }
}

/// Who found a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundBy {
    Seed,
    #[default]
    Mutation,
    /// A helper of the campaign.
    Solving,
}

/// Where an input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The case that it was made of; none: a seed.
    pub parent: Option<CaseId>,
    pub found_by: FoundBy,
}

/// A case that was kept. Its input is in `queue/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub id: CaseId,
    /// The case that it was made of; none: a seed.
    pub parent: Option<CaseId>,
    pub start: ImageId,
    /// What it left; none: the same content as some other image, or no pool.
    pub left: ImageId,
    pub priority: Priority,
    /// Executions before it was found.
    pub execution: u64,
    /// Of the campaign, in seconds, when it was found.
    pub second: u64,
    /// New with it.
    pub pm_transitions: u32,
    pub edges: u32,
    /// Its file name in `queue/`.
    pub file: String,
    /// A second run gave the same maps.
    pub stable: bool,
    #[serde(default)]
    pub found_by: FoundBy,
}
