//! Which pages there are, and writing them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::links::{Link, links};
use super::page::{place, render};
use super::summary::{SummaryEntry, entries, side_bar};

const SUMMARY: &str = "docs/SUMMARY.md";

/// The documentation of a repository.
#[derive(Debug)]
pub struct Site {
    pub root: PathBuf,
}

/// What was written, from the root of the book.
#[derive(Debug, Default)]
pub struct Written {
    pub pages: BTreeSet<PathBuf>,
    pub files: BTreeSet<PathBuf>,
}

impl Site {
    pub fn of_this_repository() -> Site {
        Site { root: Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("") }
    }

    pub fn read(&self, file: &Path) -> anyhow::Result<String> {
        let path = self.root.join(file);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }

    pub fn summary(&self) -> anyhow::Result<Vec<SummaryEntry>> {
        Ok(entries(Path::new(SUMMARY), &self.read(Path::new(SUMMARY))?))
    }

    /// The file that a link means: a folder is its README, if it has one.
    pub fn file_of(&self, link: &Link) -> Option<PathBuf> {
        let path = self.root.join(&link.target);
        if path.is_dir() {
            return Some(link.target.join("README.md")).filter(|readme| self.root.join(readme).is_file());
        }
        path.is_file().then(|| link.target.clone())
    }

    /// Writes the pages of the summary, and everything that they link to.
    pub fn write(&self, out: &Path) -> anyhow::Result<Written> {
        let entries = self.summary()?;
        let listed = entries.iter().filter_map(|entry| match entry {
            SummaryEntry::Page { file, .. } => Some(file.clone()),
            SummaryEntry::Part(_) => None,
        });
        let mut waiting: Vec<PathBuf> = listed.collect();
        let first = waiting.first().cloned().context("docs/SUMMARY.md lists no page")?;
        let mut done = BTreeSet::new();
        let mut written = Written::default();
        while let Some(file) = waiting.pop() {
            ensure!(self.root.join(&file).is_file(), "{} is linked to, but is not there", file.display());
            if !done.insert(file.clone()) {
                continue;
            }
            let to = out.join(place(&file));
            fs::create_dir_all(to.parent().unwrap_or(out)).with_context(|| to.display().to_string())?;
            if !is_page(&file) {
                fs::copy(self.root.join(&file), &to).with_context(|| to.display().to_string())?;
                written.files.insert(file);
                continue;
            }
            let text = self.read(&file)?;
            waiting.extend(links(&file, &text).iter().filter_map(|link| self.file_of(link)));
            let html = render(&file, &text, &side_bar(&entries, &file), &|link| self.file_of(link));
            fs::write(&to, html).with_context(|| to.display().to_string())?;
            written.pages.insert(place(&file));
        }
        let way = place(&first).display().to_string();
        let index = format!(
            "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Fencepost</title>\n<meta http-equiv=\"refresh\" content=\"0; url={way}\">\n<a href=\"{way}\">Fencepost</a>\n"
        );
        fs::write(out.join("index.html"), index).with_context(|| out.display().to_string())?;
        Ok(written)
    }
}

pub fn is_page(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "md")
}
