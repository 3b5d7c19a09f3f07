//! Lists that only grow: one JSON value per line. A killed process leaves at most half a line, which is dropped when the list
//! is opened again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A list that is being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

impl Journal {
    /// Opens the list, and what is in it.
    pub fn open<T: DeserializeOwned>(path: &Path) -> io::Result<(Journal, Vec<T>)> {
        let (entries, whole) = entries(path)?;
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        file.set_len(whole as u64)?;
        Ok((Journal { file }, entries))
    }

    /// What is in a list that somebody else may be writing.
    pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
        Ok(entries(path)?.0)
    }

    pub fn add<T: Serialize>(&mut self, entry: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry).map_err(io::Error::other)?;
        line.push(b'\n');
        // One write: a line is there, or not, unless the disk is full.
        self.file.write_all(&line)
    }
}

/// The whole lines of a list, and where they end.
fn entries<T: DeserializeOwned>(path: &Path) -> io::Result<(Vec<T>, usize)> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut entries = Vec::new();
    for line in text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()));
        entries.push(serde_json::from_slice(line).map_err(damaged)?);
    }
    Ok((entries, whole))
}

/// A file is there whole, or not at all.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, bytes)?;
    fs::rename(&unfinished, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let (mut journal, before) = Journal::open::<u32>(&path).unwrap();
        assert!(before.is_empty());
        journal.add(&1).unwrap();
        journal.add(&22).unwrap();
        for cut in 0..5 {
            let text = &b"1\n22\n"[..cut];
            fs::write(&path, text).unwrap();
            let (mut journal, entries) = Journal::open::<u32>(&path).unwrap();
            let whole = text.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(entries, [1, 22][..whole]);
            journal.add(&3).unwrap();
            let (_, entries) = Journal::open::<u32>(&path).unwrap();
            assert_eq!(entries.len(), whole + 1);
            assert_eq!(entries.last(), Some(&3));
        }
    }
}
