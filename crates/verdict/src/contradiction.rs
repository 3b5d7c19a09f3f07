//! Two runs of a recovery that cannot both be functions of what they read.

use serde::{Deserialize, Serialize};

use crate::read::Read;
use crate::verdict::Verdict;

/// Two runs read the same and went on differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Contradiction {
    /// After so many equal reads one read this and the other that; none: nothing more.
    Reads {
        after: usize,
        one: Option<Read>,
        other: Option<Read>,
    },
    Verdicts {
        one: Verdict,
        other: Verdict,
    },
}
