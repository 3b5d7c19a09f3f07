//! Source text for locations, where it can be found.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

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
        let number = (line as usize).checked_sub(1)?;
        text.as_ref()?.lines().nth(number).map(str::to_owned)
    }
}
