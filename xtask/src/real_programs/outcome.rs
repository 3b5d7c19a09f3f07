//! What a run shows to the outside.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;

#[derive(Debug, PartialEq, Eq)]
pub struct ProgramOutcome {
    status: String,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// Length and hash of every file.
    files: BTreeMap<PathBuf, (u64, u64)>,
}

impl ProgramOutcome {
    /// `folder` is where the files lie that count.
    pub fn new(output: Output, folder: Option<&Path>) -> io::Result<ProgramOutcome> {
        let mut files = BTreeMap::new();
        if let Some(folder) = folder {
            collect(folder, &mut files)?;
        }
        Ok(ProgramOutcome { status: output.status.to_string(), stdout: output.stdout, stderr: output.stderr, files })
    }

    /// How `other` differs from this one, in words.
    pub fn difference(&self, other: &ProgramOutcome) -> Option<String> {
        if self.status != other.status {
            return Some(format!("{} instead of {}; {}", other.status, self.status, excerpt(&other.stderr, 0)));
        }
        for (name, mine, theirs) in [("stdout", &self.stdout, &other.stdout), ("stderr", &self.stderr, &other.stderr)] {
            if mine != theirs {
                let at = mine.iter().zip(theirs).position(|(a, b)| a != b).unwrap_or(mine.len().min(theirs.len()));
                return Some(format!("{name} has {} instead of {}", excerpt(theirs, at), excerpt(mine, at)));
            }
        }
        let path =
            self.files.keys().chain(other.files.keys()).find(|&path| self.files.get(path) != other.files.get(path))?;
        let (got, expected) = (other.files.get(path), self.files.get(path));
        Some(format!("{} has (length, hash) {got:?} instead of {expected:?}", path.display()))
    }
}

fn excerpt(text: &[u8], at: usize) -> String {
    let end = text.len().min(at + 160);
    format!("{:?}", String::from_utf8_lossy(&text[at.min(end)..end]))
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, (u64, u64)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path())?;
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            files.insert(entry.path(), (bytes.len() as u64, hasher.finish()));
        }
    }
    Ok(())
}
