//! Bundles of a batch, until it is known which of its findings are new.

use std::path::PathBuf;

use evidence::bundle;
use finding::finding::FindingId;
use supervise::temporary::Temporary;

use super::check::Failed;
use crate::commands::options::crash::CrashOptions;

/// A folder for the bundles of one check. A batch that shows a known finding again, with other workloads, must not change the bundle of the
/// one that is told.
#[derive(Debug)]
pub struct Staged {
    folder: Temporary,
    kept: PathBuf,
}

impl Staged {
    /// For a check with these options.
    pub fn new(options: &CrashOptions) -> Result<Staged, Failed> {
        let folder = Temporary::new("bundles").map_err(|error| {
            Failed::Usage(format!("cannot make a temporary folder: {error}; TMPDIR says where it should be"))
        })?;
        Ok(Staged { folder, kept: options.bundles.clone() })
    }

    /// These options, but that bundles go to this folder.
    pub fn options(&self, options: &CrashOptions) -> CrashOptions {
        let mut staged = options.clone();
        let bundles = std::mem::replace(&mut staged.bundles, self.folder.path().to_owned());
        staged.bundles_shown.get_or_insert(bundles);
        staged
    }

    /// This finding is told as this check shows it.
    pub fn keep(&self, id: &FindingId) -> Result<(), Failed> {
        bundle::take(id, self.folder.path(), &self.kept).map_err(|error| Failed::Usage(error.to_string()))
    }
}
