//! How a failure shows.

use serde::{Deserialize, Serialize};

/// How a failure showed. The search only carries it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Symptom {
    /// Short, the same for the same failure: `exit 1`, `signal 11`, `hang`.
    pub key: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}
