//! Evidence on disk: `evidence.json` in the finding's bundle.

use std::fs;
use std::path::Path;

use finding::evidence::{Evidence, VERSION};
use finding::finding::FindingId;
use serde::Deserialize;

use crate::bundle::BundleError;

const NAME: &str = "evidence.json";

#[derive(Deserialize)]
struct Version {
    fencepost_evidence: u32,
}

/// Writes it into the bundle of its finding.
pub fn write(evidence: &Evidence, bundles: &Path) -> Result<(), BundleError> {
    let path = bundles.join(&evidence.finding.id.0).join(NAME);
    let text = serde_json::to_vec(evidence).expect("plain data is always JSON");
    fs::write(&path, text).map_err(|source| BundleError::Write { path, source })
}

/// Reads the evidence of a finding.
pub fn read(bundles: &Path, id: &FindingId) -> Result<Evidence, BundleError> {
    let path = bundles.join(&id.0).join(NAME);
    let damaged = |what: String| BundleError::Damaged { path: path.clone(), what };
    let text = fs::read(&path).map_err(|error| damaged(error.to_string()))?;
    // Other versions have other fields.
    let Version { fencepost_evidence } = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if fencepost_evidence != VERSION {
        return Err(damaged(format!("it is of version {fencepost_evidence}, not {VERSION}")));
    }
    serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))
}
