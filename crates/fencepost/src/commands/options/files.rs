//! Documents about one run, each in its own file: the options that `lint`, `check` and `crash` share.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::super::output::document::Document;
use super::super::output::html::writable;
use crate::exit::Exit;
use crate::render;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct FileOptions {
    /// Write the findings to FILE as JSON Lines.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the findings to FILE as SARIF 2.1.0.
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Write the findings to FILE as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl FileOptions {
    /// Says before anything runs that a file cannot be written.
    pub fn can_be_written(&self) -> Result<(), String> {
        let files = [("--json", &self.json), ("--sarif", &self.sarif), ("--junit", &self.junit)];
        files
            .into_iter()
            .filter_map(|(name, file)| Some((name, file.as_deref()?)))
            .try_for_each(|(name, file)| writable(name, file))
    }

    /// Writes what was asked for. `exit` is how the command would end otherwise.
    pub fn write(&self, document: &Document<'_>, exit: Exit) -> Exit {
        let mut ended = exit;
        let mut write = |file: Option<&Path>, text: &dyn Fn() -> String| {
            let Some(path) = file else { return };
            if let Err(error) = fs::write(path, text() + "\n") {
                render::error(format_args!("cannot write {}: {error}", path.display()));
                ended = Exit::Usage;
            }
        };
        write(self.json.as_deref(), &|| document.json());
        write(self.sarif.as_deref(), &|| document.sarif());
        write(self.junit.as_deref(), &|| document.junit());
        ended
    }
}
