//! The PM file system of our own for FUSE, `targets/fs`: its seeded bugs, how each is found, and how it is built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TargetError;
use crate::compile::compile;

const SOURCES: [&str; 2] = ["journalfs.c", "store.h"];
const PRELOAD: &str = "redolog.c";

/// A seeded bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bug {
    /// `-DBUG=`; 0 is the correct twin.
    pub variant: u32,
    /// What it is, for people.
    pub what: String,
    /// The workloads that find it in the tests.
    pub found_by: String,
    /// File, line and class of each store that may be blamed.
    pub guilty: Vec<(String, u32, String)>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fs")
}

/// All seeded bugs: lines `//! bug N: WHAT; found by HOW` in the head, and `//~ N CLASS` at the guilty stores.
pub fn bugs() -> Result<Vec<Bug>, TargetError> {
    let mut bugs = Vec::new();
    let mut texts = Vec::new();
    for name in SOURCES {
        let path = folder().join(name);
        texts.push((name, fs::read_to_string(&path).map_err(TargetError::io(&path))?));
    }
    for line in texts[0].1.lines().filter_map(|line| line.strip_prefix("//! bug ")) {
        let parts = line.split_once(": ").and_then(|(number, rest)| {
            let (what, found_by) = rest.split_once("; found by ")?;
            Some((number.parse().ok()?, what.to_owned(), found_by.to_owned()))
        });
        let wrong = || TargetError::NoHeadLine { path: folder().join(SOURCES[0]), key: "bug N: WHAT; found by HOW" };
        let (variant, what, found_by) = parts.ok_or_else(wrong)?;
        bugs.push(Bug { variant, what, found_by, guilty: Vec::new() });
    }
    for (name, text) in &texts {
        for (number, line) in (1u32..).zip(text.lines()) {
            for marker in line.split("//~ ").skip(1) {
                let mut words = marker.split_whitespace();
                let variant: Option<u32> = words.next().and_then(|word| word.parse().ok());
                let bug = variant.and_then(|variant| bugs.iter_mut().find(|bug| bug.variant == variant));
                let (Some(bug), Some(class)) = (bug, words.next()) else {
                    let (path, text) = (folder().join(name), marker.to_owned());
                    return Err(TargetError::Marker { path, line: number, text });
                };
                bug.guilty.push(((*name).to_owned(), number, class.to_owned()));
            }
        }
    }
    match bugs.iter().find(|bug| bug.guilty.is_empty()) {
        Some(bug) => Err(TargetError::NoMarker { path: folder().join(SOURCES[0]), variant: bug.variant }),
        None => Ok(bugs),
    }
}

/// The correct file system that needs fsync, among the variants.
pub const LAZY: u32 = 100;

/// How a daemon misbehaves without any crash: `enum fault` of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    HangsAtMount,
    HangsAtUnmount,
    Dies,
    Killed,
    /// Symbolic links cannot be removed.
    KeepsSymlinks,
    /// Holes of files have other bytes each time.
    ReadsNoise,
}

/// Builds a variant into `folder`. Returns the executable.
pub fn build(into: &Path, variant: u32) -> Result<PathBuf, TargetError> {
    build_faulty(into, variant, Fault::None)
}

/// The library that intercepts system calls; 0 is the correct twin.
pub fn build_preload(into: &Path, variant: u32) -> Result<PathBuf, TargetError> {
    let source = folder().join(PRELOAD);
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-mclwb"]);
    command.arg(format!("-DBUG={variant}")).arg(&source).arg("-ldl");
    let output = into.join(format!("libredolog-{variant}.so"));
    compile(command, &output, &[source])?;
    Ok(output)
}

/// Lines of the library that may be blamed for a bug.
pub fn preload_lines(variant: u32) -> Result<Vec<u32>, TargetError> {
    let path = folder().join(PRELOAD);
    let text = fs::read_to_string(&path).map_err(TargetError::io(&path))?;
    let marks = |line: &str| line.split("//~ ").skip(1).any(|mark| mark.starts_with(&format!("{variant} ")));
    Ok((1u32..).zip(text.lines()).filter(|(_, line)| marks(line)).map(|(number, _)| number).collect())
}

/// The same, with a fault.
pub fn build_faulty(into: &Path, variant: u32, fault: Fault) -> Result<PathBuf, TargetError> {
    let sources: Vec<PathBuf> = SOURCES.iter().map(|name| folder().join(name)).collect();
    let mut command = Command::new("cc");
    command.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-mclwb"]).arg(format!("-DBUG={variant}"));
    command.arg(format!("-DFAULT={}", fault as u32));
    command.args(["-D_FILE_OFFSET_BITS=64", "-I/usr/include/fuse3"]).arg(&sources[0]).arg("-lfuse3");
    let output = into.join(format!("journalfs-{variant}-{}", fault as u32));
    compile(command, &output, &sources)?;
    Ok(output)
}

/// Debian's PM file system for FUSE among the examples of libpmemobj-dev: its daemon, and the command that makes one.
pub fn build_pmemobjfs(into: &Path) -> Result<(PathBuf, PathBuf), TargetError> {
    let examples = Path::new("/usr/share/doc/libpmemobj-dev/examples");
    let source = examples.join("pmemobjfs/pmemobjfs.c");
    if !source.exists() {
        return Err(TargetError::NoPmdk { path: source });
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("pmdk");
    let build = |output: &Path| {
        let mut command = Command::new("cc");
        command.args(["-O2", "-g", "-w", "-D_FILE_OFFSET_BITS=64", "-DFUSE_USE_VERSION=26", "-I/usr/include/fuse"]);
        for include in [own.clone(), examples.to_owned(), examples.join("map"), examples.join("tree_map")] {
            command.arg("-I").arg(include);
        }
        let sources: Vec<PathBuf> = [
            source.clone(),
            examples.join("map/map.c"),
            examples.join("map/map_ctree.c"),
            examples.join("tree_map/ctree_map.c"),
        ]
        .into();
        command.args(&sources).args(["-lpmemobj", "-lpmem", "-lfuse", "-pthread"]);
        compile(command, output, &sources)
    };
    // The program is what its name says.
    let (daemon, mkfs) = (into.join("pmemobjfs"), into.join("mkfs.pmemobjfs"));
    build(&daemon)?;
    build(&mkfs)?;
    Ok((daemon, mkfs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_a_guilty_line_and_a_way_to_find_it() {
        let bugs = bugs().expect("well-formed sources");
        assert!(bugs.len() >= 16);
        let numbers: Vec<u32> = bugs.iter().map(|bug| bug.variant).collect();
        assert_eq!(numbers, (1..=bugs.len() as u32).collect::<Vec<_>>());
        assert!(bugs.iter().all(|bug| bug.found_by == "bugs.ops" || bug.found_by == "fsync"));
    }
}
