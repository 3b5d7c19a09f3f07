//! Source text for locations, where it can be found.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

/// A few lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// As debug information names it.
    pub file: String,
    /// The number of the first line.
    pub first: u32,
    pub lines: Vec<String>,
}

/// Source files that were looked for.
#[derive(Debug, Default)]
pub struct Sources {
    folders: Vec<PathBuf>,
    files: HashMap<String, Option<Rc<str>>>,
}

impl Sources {
    /// Relative paths are looked up in these folders, in order.
    pub fn new(folders: Vec<PathBuf>) -> Sources {
        Sources { folders, files: HashMap::new() }
    }

    /// The text of one line, without its end.
    pub fn line(&mut self, file: &str, line: u32) -> Option<String> {
        let number = (line as usize).checked_sub(1)?;
        self.text(file)?.lines().nth(number).map(str::to_owned)
    }

    /// A line with so many lines before and after it.
    pub fn excerpt(&mut self, file: &str, line: u32, around: u32) -> Option<Excerpt> {
        let text = self.text(file)?;
        let first = line.saturating_sub(around).max(1);
        let count = (line.checked_add(around)? - first) as usize + 1;
        let lines: Vec<String> = text.lines().skip(first as usize - 1).take(count).map(shortened).collect();
        (lines.len() > line.checked_sub(first)? as usize).then_some(Excerpt { file: file.to_owned(), first, lines })
    }

    fn text(&mut self, file: &str) -> Option<Rc<str>> {
        let folders = &self.folders;
        let text = self.files.entry(file.to_owned()).or_insert_with(|| {
            let path = Path::new(file);
            let read = |path: &Path| fs::read_to_string(path).ok();
            let text = if path.is_absolute() {
                read(path)
            } else {
                folders.iter().find_map(|folder| read(&folder.join(path)))
            };
            text.map(Rc::from)
        });
        text.clone()
    }
}

/// Generated sources have lines that nobody reads.
fn shortened(line: &str) -> String {
    const LONGEST: usize = 300;
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_stays_inside_the_file() {
        let mut sources = Sources::default();
        sources.files.insert("a.c".into(), Some(Rc::from("one\ntwo\nthree\n")));
        let lines = |excerpt: Option<Excerpt>| excerpt.map(|excerpt| (excerpt.first, excerpt.lines.join(" ")));
        assert_eq!(lines(sources.excerpt("a.c", 1, 1)), Some((1, "one two".into())));
        assert_eq!(lines(sources.excerpt("a.c", 3, 1)), Some((2, "two three".into())));
        assert_eq!(lines(sources.excerpt("a.c", 0, 0)), None);
        assert_eq!(lines(sources.excerpt("a.c", 4, 9)), None);
        assert_eq!(lines(sources.excerpt("b.c", 1, 1)), None);
    }
}
