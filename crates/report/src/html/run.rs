//! What a report says about the whole run. Kept beside the bundles, so that a report can be made later.

use finding::finding::{Finding, FindingId};
use finding::note::RunNote;
use finding::source::Excerpt;
use serde::{Deserialize, Serialize};

use super::campaign::CampaignHistory;
use crate::json::CrashSummary;

/// Of the file; other versions are not read.
pub const VERSION: u32 = 2;

/// One `check`, `crash` or `fuzz`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub fencepost_run: u32,
    /// Of Fencepost.
    pub version: String,
    /// Seconds since 1970; none if that is not known.
    pub date: Option<u64>,
    /// Fencepost's own command line, without its name.
    pub arguments: Vec<String>,
    /// The recorded command.
    pub target: Vec<String>,
    /// Where it ran.
    pub folder: String,
    pub pools: Vec<String>,
    pub events: u64,
    /// The coverage statement.
    pub explored: Vec<String>,
    pub not_explored: Vec<String>,
    pub notes: Vec<RunNote>,
    pub interrupted: bool,
    pub suppressed: u64,
    /// Findings that the baseline has.
    #[serde(default)]
    pub known: Vec<FindingId>,
    /// None if no crash was simulated.
    pub crash: Option<CrashSummary>,
    /// Of `fuzz`.
    #[serde(default)]
    pub campaign: Option<CampaignHistory>,
    /// Findings that have bundles.
    pub bundled: Vec<FindingId>,
    /// All others: misuse, and what no bundle could be written for.
    pub others: Vec<Finding>,
    /// Those with bundles of which other rules say something, too.
    #[serde(default)]
    pub merged: Vec<Finding>,
    /// Source around the locations of `others`.
    pub excerpts: Vec<Excerpt>,
}
