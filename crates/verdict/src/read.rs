//! What a recovery looked at.

use persistency::line::LineId;
use serde::{Deserialize, Serialize};
use trace::event::PoolId;

/// Something of an image that recovery looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Read {
    Line(LineId),
    Length(PoolId),
}
