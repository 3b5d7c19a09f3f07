//! `targets/solve`: bugs behind conditions, each program with what it says about itself. Its README.md lists the lines.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TargetError;
use crate::compile::compile;

/// A program with one bug.
#[derive(Clone, Debug)]
pub struct SolveTarget {
    pub name: String,
    pub source: PathBuf,
    /// Options of `fencepost explore`.
    pub explore: Vec<String>,
    /// Arguments behind the pool.
    pub command: Vec<OsString>,
    /// Where the store is that is not flushed.
    pub guilty: u32,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("solve")
}

/// All of them, by name.
pub fn all() -> Result<Vec<SolveTarget>, TargetError> {
    let folder = folder();
    let entries = fs::read_dir(&folder).map_err(TargetError::io(&folder))?;
    let mut sources: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    sources.iter().map(|source| SolveTarget::read(source)).collect()
}

impl SolveTarget {
    fn read(source: &Path) -> Result<SolveTarget, TargetError> {
        let text = fs::read_to_string(source).map_err(TargetError::io(source))?;
        let line = |key: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(&format!("//@ {key}:")));
            found.unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<String>>()
        };
        let guilty = text.lines().position(|line| line.contains("//~ FP0101"));
        let none = || TargetError::NoMarker { path: source.to_owned(), variant: 1 };
        Ok(SolveTarget {
            name: source.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            source: source.to_owned(),
            explore: line("explore"),
            command: line("command").into_iter().map(OsString::from).collect(),
            guilty: guilty.ok_or_else(none)? as u32 + 1,
        })
    }

    /// Builds it, or (`repaired`) its twin, in this folder.
    pub fn build(&self, repaired: bool, folder: &Path) -> Result<PathBuf, TargetError> {
        let output = folder.join(if repaired { format!("{}-twin", self.name) } else { self.name.clone() });
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g"]).args(repaired.then_some("-DREPAIRED")).arg(&self.source);
        compile(cc, &output, &[self.source.clone(), self.source.with_file_name("solve.h")])?;
        Ok(output)
    }
}
