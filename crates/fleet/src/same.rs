//! What must be the same on all machines: files, compared by hash, and the environment variables that are passed on.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::blob::BlobId;
use crate::text;

/// Variables of the environment that workers take over: others of the coordinator's may be secrets, and are none of theirs.
const TAKEN_OVER: [&str; 6] = ["PMEM", "LD_LIBRARY_PATH", "LD_PRELOAD", "LANG", "LC_", "TZ"];

/// Does a worker take this variable over, if the user named `more` ones?
pub fn is_taken_over(name: &str, more: &[String]) -> bool {
    TAKEN_OVER.iter().any(|prefix| name.starts_with(prefix)) || more.iter().any(|own| own == name)
}

/// A file that must be the same everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SameFile {
    path: String,
    hash: BlobId,
}

impl SameFile {
    /// Those of these files that can be read, each once.
    pub fn of(mut paths: Vec<PathBuf>) -> Vec<SameFile> {
        use std::os::unix::ffi::OsStrExt;
        paths.sort_unstable();
        paths.dedup();
        let file = |path: &PathBuf| {
            Some(SameFile { path: text::of(path.as_os_str().as_bytes()), hash: BlobId::of_file(path).ok()? })
        };
        paths.iter().filter_map(file).collect()
    }

    /// Are they the same here? The message says which one is not.
    pub fn agree(files: &[SameFile]) -> Result<(), String> {
        use std::os::unix::ffi::OsStringExt;
        for SameFile { path, hash } in files {
            let path = text::bytes(path).map(std::ffi::OsString::from_vec).ok_or("a path makes no sense")?;
            agrees(Path::new(&path), *hash)?;
        }
        Ok(())
    }
}

fn agrees(path: &Path, theirs: BlobId) -> Result<(), String> {
    match BlobId::of_file(path) {
        Ok(own) if own == theirs => Ok(()),
        Ok(own) => {
            let (path, own, theirs) = (path.display(), own.to_string(), theirs.to_string());
            Err(format!(
                "{path} is another file here (SHA-256 {}…) than at the coordinator ({}…); install the same target everywhere",
                &own[..12],
                &theirs[..12]
            ))
        }
        Err(error) => Err(format!("{}: {error}; install the target under the same path everywhere", path.display())),
    }
}
