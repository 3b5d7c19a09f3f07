//! Exhibits on disk: `exhibit.json` in the finding's bundle.

use std::fs;
use std::path::Path;

use finding::exhibit::{Exhibit, VERSION};
use finding::finding::FindingId;

use crate::bundle::BundleError;

const NAME: &str = "exhibit.json";

/// Writes it into the bundle of its finding.
pub fn write(exhibit: &Exhibit, bundles: &Path) -> Result<(), BundleError> {
    let path = bundles.join(&exhibit.finding.id.0).join(NAME);
    let text = serde_json::to_vec(exhibit).expect("plain data is always JSON");
    fs::write(&path, text).map_err(|source| BundleError::Write { path, source })
}

/// Reads the exhibit of a finding.
pub fn read(bundles: &Path, id: &FindingId) -> Result<Exhibit, BundleError> {
    let path = bundles.join(&id.0).join(NAME);
    let damaged = |what: String| BundleError::Damaged { path: path.clone(), what };
    let text = fs::read(&path).map_err(|error| damaged(error.to_string()))?;
    let exhibit: Exhibit = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if exhibit.fencepost_exhibit != VERSION {
        return Err(damaged(format!("it is of version {}, not {VERSION}", exhibit.fencepost_exhibit)));
    }
    Ok(exhibit)
}
