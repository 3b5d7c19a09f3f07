//! The programs of `targets/crash` and `targets/ops`, and their variants.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt, fs};

use super::head::{Bug, Head};
use super::marker::{self, Expectation};
use crate::TargetError;
use crate::compile::compile;

/// Which of a program's bugs is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variant(pub u32);

/// The correct twin.
pub const TWIN: Variant = Variant(0);

/// A bug in the set-up of every program of `targets/ops` that is not on libpmemobj; it has no guilty line in the program itself.
pub const SETUP: Variant = Variant(30);
/// The functions that have it.
pub const SETUP_FUNCTIONS: [&str; 3] = ["ops_start", "open_map", "open_pool"];

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One program: its correct twin and its variants with one bug each. Not necessarily built.
#[derive(Clone, Debug)]
pub struct CrashTarget {
    /// Folder and name, as in `c/tokens`.
    pub name: String,
    pub source: PathBuf,
    /// How many bugs it has; they are numbered from 1.
    pub variants: u32,
    /// The words of the workload's command; see [`CrashTarget::run_command`].
    pub run: Vec<String>,
    /// The words of the recovery's command; see [`CrashTarget::recover_command`].
    pub recover: Vec<String>,
    /// Set for both commands.
    pub env: Vec<(String, String)>,
    /// Options of `fencepost check` without which a bug is not found.
    pub options: Vec<String>,
    /// Why no check finds its bugs: it shows a limit of the model.
    pub missed: Option<String>,
    /// The guilty lines, by variant and line; at least one for each variant.
    pub expectations: Vec<Expectation>,
    /// What its operations look like, if it takes operations.
    pub grammar: Option<PathBuf>,
    /// What its bugs do, if it takes operations.
    pub bugs: Vec<Bug>,
    /// Sets of bugs that one program can have together.
    pub together: Vec<Vec<Variant>>,
    flags: Vec<String>,
    language: Language,
    /// The folder of the suite.
    suite: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    C,
    Cxx,
    Rust,
}

fn suite(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// All programs of `targets/crash`, by name.
pub fn all() -> Result<Vec<CrashTarget>, TargetError> {
    programs(&suite("crash"))
}

/// All programs of `targets/ops`, by name: those that take operations and break silently.
pub fn with_operations() -> Result<Vec<CrashTarget>, TargetError> {
    programs(&suite("ops"))
}

/// All programs of `targets/fuzz`, by name: their bugs are where no obvious workload goes.
pub fn rare() -> Result<Vec<CrashTarget>, TargetError> {
    programs(&suite("fuzz"))
}

fn programs(suite: &Path) -> Result<Vec<CrashTarget>, TargetError> {
    let mut targets = Vec::new();
    for folder in ["c", "cpp", "rust", "files", "databases", "limits", "pmdk"].map(|name| suite.join(name)) {
        if !folder.exists() {
            continue;
        }
        for source in entries(&folder)? {
            targets.extend(CrashTarget::read(source, suite)?);
        }
    }
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(targets)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, TargetError> {
    let listing = fs::read_dir(folder).map_err(TargetError::io(folder))?;
    listing.map(|entry| Ok(entry.map_err(TargetError::io(folder))?.path())).collect()
}

impl CrashTarget {
    /// The program in this file; none for a file that others include.
    fn read(source: PathBuf, suite: &Path) -> Result<Option<CrashTarget>, TargetError> {
        let language = match source.extension().and_then(|e| e.to_str()) {
            Some("c") => Language::C,
            Some("cpp") => Language::Cxx,
            Some("rs") => Language::Rust,
            _ => return Ok(None),
        };
        let text = fs::read_to_string(&source).map_err(TargetError::io(&source))?;
        if !text.starts_with("//!") || !text.contains("//! variants:") {
            return Ok(None);
        }
        let head = Head::parse(&source, &text)?;
        let expectations = marker::parse(&source, &text, head.variants)?;
        let name = source.strip_prefix(suite).unwrap_or(&source).with_extension("").display().to_string();
        let Head { variants, run, recover, env, flags, options, missed, grammar, bugs, together } = head;
        let grammar = grammar.map(|file| suite.join(file));
        let suite = suite.to_owned();
        #[rustfmt::skip]
        let target = CrashTarget {
            name, source, variants, run, recover, env, options, missed, expectations, grammar, bugs, together, flags, language, suite,
        };
        Ok(Some(target))
    }

    /// The numbers of its bugs.
    pub fn variants(&self) -> impl Iterator<Item = Variant> + use<> {
        (1..=self.variants).map(Variant)
    }

    /// The guilty lines of one variant; none for the twin.
    pub fn expected(&self, variant: Variant) -> impl Iterator<Item = &Expectation> {
        self.expectations.iter().filter(move |expectation| expectation.variant == variant)
    }

    /// The workload on this pool, with the program that [`CrashTarget::build`] made.
    pub fn run_command(&self, program: &Path, pool: &Path) -> Vec<String> {
        filled(&self.run, program, pool)
    }

    /// The recovery on this pool.
    pub fn recover_command(&self, program: &Path, pool: &Path) -> Vec<String> {
        filled(&self.recover, program, pool)
    }

    /// Builds one variant into `folder`, unless it is there already. Returns the executable.
    pub fn build(&self, variant: Variant, folder: &Path) -> Result<PathBuf, TargetError> {
        self.build_together(&[variant], folder)
    }

    /// Builds a program with all of these bugs into `folder`, unless it is there already. Returns the executable.
    pub fn build_together(&self, bugs: &[Variant], folder: &Path) -> Result<PathBuf, TargetError> {
        let include = self.suite.join("include");
        let mut sources = vec![self.source.clone()];
        // What the programs with operations share includes what the others share.
        for shared in [&include, &suite("crash").join("include")] {
            sources.extend(entries(shared)?);
        }
        if let Some(folder) = self.source.parent() {
            let is_header = |path: &PathBuf| path.extension().is_some_and(|e| e == "h" || e == "hpp");
            sources.extend(entries(folder)?.into_iter().filter(is_header));
        }
        let numbers: Vec<String> = bugs.iter().map(Variant::to_string).collect();
        let output = folder.join(format!("{}-{}", self.name, numbers.join("-")));
        compile(self.compiler(bugs, &include), &output, &sources)?;
        Ok(output)
    }

    fn compiler(&self, bugs: &[Variant], include: &Path) -> Command {
        let mut command;
        let bits: u64 = bugs.iter().map(|bug| 1 << bug.0).sum();
        match self.language {
            Language::C | Language::Cxx => {
                command = Command::new(if self.language == Language::C { "cc" } else { "c++" });
                command.args(["-g", "-O1", "-Wall", "-Wextra", "-mclwb", "-mclflushopt", "-pthread"]);
                match bugs {
                    [bug] => command.arg(format!("-DBUG={bug}")),
                    _ => command.arg(format!("-DBUGS={bits}")),
                };
                command.arg("-I").arg(include).arg(&self.source);
            }
            Language::Rust => {
                command = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
                // The crate's name is not that of the file: `-o` names the output, and a hyphen would not do.
                command.args(["--edition", "2024", "-g", "-C", "opt-level=1", "--crate-name", "target"]);
                command.arg(&self.source);
            }
        }
        command.args(&self.flags).env("BUGS", bits.to_string());
        command
    }
}

fn filled(words: &[String], program: &Path, pool: &Path) -> Vec<String> {
    let fill = |word: &String| {
        word.replace("{bin}", &program.display().to_string()).replace("{pool}", &pool.display().to_string())
    };
    words.iter().map(fill).collect()
}
