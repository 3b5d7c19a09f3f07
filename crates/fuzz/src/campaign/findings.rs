//! The root causes of a campaign: each once, with the case that shows it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use finding::finding::{Finding, FindingId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::case::CaseId;
use crate::image::Image;
use crate::journal::Journal;

/// A root cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub finding: Finding,
    /// The case whose check found it. The input that is shown may be shorter.
    pub case: CaseId,
    /// Of the campaign, and executions until then.
    pub second: u64,
    pub execution: u64,
}

#[derive(Debug)]
pub struct Findings {
    folder: PathBuf,
    journal: Journal,
    found: Vec<Found>,
    by_id: FxHashMap<FindingId, usize>,
}

impl Findings {
    pub fn open(folder: &Path) -> io::Result<Findings> {
        let bundles = folder.join("findings");
        fs::create_dir_all(&bundles)?;
        let (journal, found) = Journal::open::<Found>(&folder.join("findings.jsonl"))?;
        let by_id = found.iter().enumerate().map(|(number, found)| (found.finding.id.clone(), number)).collect();
        Ok(Findings { folder: bundles, journal, found, by_id })
    }

    pub fn all(&self) -> &[Found] {
        &self.found
    }

    pub fn knows(&self, id: &FindingId) -> bool {
        self.by_id.contains_key(id)
    }

    /// Adds a root cause, unless it is known; whether it was new. `bundle` is a folder with its bundle, if it has one; the input and
    /// the starting pool of its case go beside it.
    pub fn add(&mut self, found: Found, bundle: Option<&Path>, input: &[u8], start: &Image) -> io::Result<bool> {
        if self.knows(&found.finding.id) {
            return Ok(false);
        }
        let folder = self.folder.join(&found.finding.id.0);
        if let Some(bundle) = bundle.map(|bundle| bundle.join(&found.finding.id.0)).filter(|bundle| bundle.is_dir()) {
            copy(&bundle, &folder)?;
        }
        let case = folder.join("case");
        fs::create_dir_all(&case)?;
        fs::write(case.join("input"), input)?;
        start.write(&case, "start")?;
        self.journal.add(&found)?;
        self.by_id.insert(found.finding.id.clone(), self.found.len());
        self.found.push(found);
        Ok(true)
    }
}

/// Copies a folder.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?
        } else {
            fs::copy(entry.path(), target).map(drop)?
        }
    }
    Ok(())
}
