//! The PM file system of our own as a kernel module, `targets/fs/kmod`: its seeded bugs, and how it is built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TargetError;

const SOURCE: &str = "stonefs.c";
const FILES: [&str; 2] = ["Makefile", SOURCE];

/// A seeded bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bug {
    /// The module's parameter `bug=`; 0 is the correct twin.
    pub variant: u32,
    /// What it is, for people.
    pub what: String,
    /// One of these functions must be named.
    pub functions: Vec<String>,
}

impl Bug {
    /// Does this text, a finding as JSON, name the place?
    pub fn is_named_in(&self, finding: &str) -> bool {
        self.functions.iter().any(|function| finding.contains(&format!("\"function\":\"{function}\"")))
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fs/kmod")
}

/// Workloads that show every bug.
pub fn workloads() -> PathBuf {
    folder().join("bugs.ops")
}

/// All seeded bugs: lines ` * bug N: WHAT; in FUNCTION [or FUNCTION]` in the head.
pub fn bugs() -> Result<Vec<Bug>, TargetError> {
    let path = folder().join(SOURCE);
    let text = fs::read_to_string(&path).map_err(TargetError::io(&path))?;
    let bug = |line: &str| {
        let (number, rest) = line.split_once(": ")?;
        let (what, functions) = rest.split_once("; in ")?;
        let functions = functions.split(" or ").map(str::to_owned).collect();
        Some(Bug { variant: number.parse().ok()?, what: what.to_owned(), functions })
    };
    let lines = text.lines().filter_map(|line| line.strip_prefix(" * bug "));
    let wrong = TargetError::NoHeadLine { path: path.clone(), key: "bug N: WHAT; in FUNCTION" };
    lines.map(bug).collect::<Option<_>>().ok_or(wrong)
}

/// Builds the module against a kernel's headers, in a folder. Returns the module.
pub fn build(into: &Path, headers: &Path) -> Result<PathBuf, TargetError> {
    fs::create_dir_all(into).map_err(TargetError::io(into))?;
    for name in FILES {
        fs::copy(folder().join(name), into.join(name)).map_err(TargetError::io(folder().join(name)))?;
    }
    let mut command = Command::new("make");
    command.arg("-C").arg(into).arg(format!("KDIR={}", headers.display()));
    let output = command.output().map_err(|source| TargetError::NoCompiler { compiler: "make".into(), source })?;
    if output.status.success() {
        return Ok(into.join("stonefs.ko"));
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(TargetError::Compile { command: format!("{command:?}"), stderr })
}
