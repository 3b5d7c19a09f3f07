//! The programs of a suite: a folder of folders whose sources say in their first lines how they are built.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::compile::compile;
use crate::directives::{Compare, Directives, Language};
use crate::expectation::{self, Expectation};
use crate::{Cpu, TargetError};

/// How a program in C gets the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    Dynamic,
    Static,
}

/// One program of the suite, not necessarily built.
#[derive(Clone, Debug)]
pub struct Program {
    /// Folder and name, as in `isa/avx`.
    pub name: String,
    /// The suite's folder; programs include the files that lie in it.
    root: PathBuf,
    source: PathBuf,
    language: Language,
    directives: Directives,
}

/// All programs of the conformance suite, by name.
pub fn conformance_programs() -> Result<Vec<Program>, TargetError> {
    programs_below("conformance")
}

/// All programs with misuse that `lint` must find, and their repaired twins, by name.
pub fn lint_programs() -> Result<Vec<Program>, TargetError> {
    programs_below("lint")
}

fn programs_below(suite: &str) -> Result<Vec<Program>, TargetError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(suite);
    let mut programs = Vec::new();
    for folder in entries(&root)?.into_iter().filter(|path| path.is_dir()) {
        for source in entries(&folder)? {
            if let Some(program) = Program::read(&root, source)? {
                programs.push(program);
            }
        }
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, TargetError> {
    let listing = fs::read_dir(folder).map_err(TargetError::io(folder))?;
    listing.map(|entry| Ok(entry.map_err(TargetError::io(folder))?.path())).collect()
}

impl Program {
    /// The program in this file; none for a file that others include.
    fn read(root: &Path, source: PathBuf) -> Result<Option<Program>, TargetError> {
        if !source.extension().is_some_and(|e| ["c", "cpp", "rs", "S"].iter().any(|known| e == *known)) {
            return Ok(None);
        }
        let text = fs::read_to_string(&source).map_err(TargetError::io(&source))?;
        if !text.starts_with("//@") {
            return Ok(None);
        }
        let directives = Directives::parse(&source, &text)?;
        let language = directives.language.ok_or_else(|| TargetError::NoLanguage { path: source.clone() })?;
        let name = source.strip_prefix(root).unwrap_or(&source).with_extension("").display().to_string();
        Ok(Some(Program { name, root: root.to_owned(), source, language, directives }))
    }

    /// What the engine says when it refuses this program, which it must.
    pub fn refusal(&self) -> Option<&str> {
        self.directives.refusal.as_deref()
    }

    pub fn compare(&self) -> Compare {
        self.directives.compare
    }

    /// The file that it is built from.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// What `lint` must say about it: its `//~` comments.
    pub fn expectations(&self) -> Result<Vec<Expectation>, TargetError> {
        let text = fs::read_to_string(&self.source).map_err(TargetError::io(&self.source))?;
        expectation::parse(&self.source, &text)
    }

    /// Whether findings of this rule are compared with the expectations.
    pub fn is_about(&self, rule: &str) -> bool {
        let prefixes = &self.directives.rules;
        prefixes.is_empty() || prefixes.iter().any(|prefix| rule.starts_with(prefix.as_str()))
    }

    /// Options of `fencepost record`, or of `fencepost lint` for its suite.
    pub fn record_args(&self) -> &[String] {
        &self.directives.args
    }

    /// Whether its pools end with the same bytes in every native run.
    pub fn has_fixed_pool(&self) -> bool {
        !self.directives.pool_varies
    }

    /// The CPU feature that it needs and this machine lacks.
    pub fn missing_feature(&self, cpu: &Cpu) -> Option<&str> {
        cpu.lacks(&self.directives.needs)
    }

    /// Builds it, and its library, into `folder`. Returns the executable.
    pub fn build(&self, folder: &Path) -> Result<PathBuf, TargetError> {
        self.build_linked(folder, Linkage::Dynamic)
    }

    /// The same; only programs in C heed the linkage.
    pub fn build_linked(&self, folder: &Path, linkage: Linkage) -> Result<PathBuf, TargetError> {
        let root = &self.root;
        let mut sources = vec![self.source.clone()];
        for shared in [Some(root.as_path()), self.source.parent()].into_iter().flatten() {
            sources.extend(entries(shared)?.into_iter().filter(|path| {
                path.extension().is_some_and(|e| e == "h") || path.ends_with("pm.rs") || path.ends_with("asm_main.c")
            }));
        }
        if let Some(library) = &self.directives.library {
            let source = self.source.with_file_name(library);
            let mut command = Command::new("cc");
            command.args(["-shared", "-fPIC", "-O1", "-g", "-I"]).arg(root).arg(&source);
            let output = folder.join(source.with_extension("so").file_name().unwrap_or_default());
            compile(command, &output, &[source])?;
        }
        let output = folder.join(&self.name);
        compile(self.command(root, linkage), &output, &sources)?;
        Ok(output)
    }

    fn command(&self, root: &Path, linkage: Linkage) -> Command {
        let flags = &self.directives.flags;
        let mut command;
        match self.language {
            Language::C | Language::Cxx => {
                command = Command::new(if self.language == Language::C { "cc" } else { "c++" });
                command.args(["-g", "-w", "-I"]).arg(root).arg(&self.source).args(flags);
                if self.language == Language::C && linkage == Linkage::Static {
                    command.arg("-static");
                }
            }
            Language::Asm => {
                command = Command::new("cc");
                command.args(["-g", "-w", "-static", "-I"]).arg(root).arg(&self.source);
                command.arg(root.join("asm_main.c")).args(flags);
            }
            Language::Rust => {
                command = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
                command.args(["--edition", "2024", "-g"]).args(flags).arg(&self.source);
            }
        }
        command
    }
}
