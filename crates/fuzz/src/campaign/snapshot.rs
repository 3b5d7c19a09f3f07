//! What other machines need of a campaign's folder, piece by piece: each round sends what came since the one before.
//!
//! Inputs are files of their own; lists and images only grow, and are sent from where the last piece ended.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::coverage::Covered;

/// They only grow.
const GROWING: [&str; 4] = ["cases.jsonl", "images/tree.jsonl", "images/data", "findings.jsonl"];
const PIECES: &str = "pieces";
const COVERED: &str = "covered";

/// What was sent.
#[derive(Debug, Default)]
pub struct Snapshot {
    pieces: usize,
    lengths: [u64; GROWING.len()],
    inputs: BTreeSet<OsString>,
}

impl Snapshot {
    /// Writes what is new in `folder` to `piece`.
    pub fn next(&mut self, folder: &Path, covered: &Covered, piece: &Path) -> io::Result<()> {
        let queue = piece.join("queue");
        fs::create_dir_all(&queue)?;
        if self.pieces == 0 {
            fs::copy(folder.join("fuzz.json"), piece.join("fuzz.json"))?;
        }
        let mut names: Vec<OsString> =
            fs::read_dir(folder.join("queue"))?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
        names.retain(|name| !self.inputs.contains(name));
        for name in names {
            fs::copy(folder.join("queue").join(&name), queue.join(&name))?;
            self.inputs.insert(name);
        }
        for (name, length) in GROWING.iter().zip(&mut self.lengths) {
            let Ok(mut file) = File::open(folder.join(name)) else { continue };
            file.seek(SeekFrom::Start(*length))?;
            let mut new = Vec::new();
            file.read_to_end(&mut new)?;
            *length += new.len() as u64;
            let to = piece.join(PIECES).join(format!("{:06}", self.pieces)).join(name);
            fs::create_dir_all(to.parent().unwrap_or(piece))?;
            fs::write(to, new)?;
        }
        fs::write(piece.join(COVERED), covered.bytes())?;
        self.pieces += 1;
        Ok(())
    }
}

/// Makes a campaign's folder of all pieces that lie in `folder`. Returns what the campaign has covered.
pub fn assemble(folder: &Path) -> io::Result<Covered> {
    let mut pieces: Vec<PathBuf> =
        fs::read_dir(folder.join(PIECES))?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    pieces.sort();
    for name in GROWING {
        let to = folder.join(name);
        fs::create_dir_all(to.parent().unwrap_or(folder))?;
        let mut whole = File::create(to)?;
        for piece in &pieces {
            if let Ok(bytes) = fs::read(piece.join(name)) {
                whole.write_all(&bytes)?;
            }
        }
    }
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "what was covered is of another version");
    Covered::of(fs::read(folder.join(COVERED))?).ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_folder_again() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |name: &str, text: &str| {
            let path = here.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let mut snapshot = Snapshot::default();
        write("fuzz.json", "{}");
        write("queue/one", "1");
        write("cases.jsonl", "a\n");
        snapshot.next(here.path(), &Covered::default(), there.path()).unwrap();
        write("queue/two", "2");
        write("cases.jsonl", "a\nb\n");
        write("images/data", "xyz");
        let second = tempfile::tempdir().unwrap();
        snapshot.next(here.path(), &Covered::default(), second.path()).unwrap();
        assert!(!second.path().join("queue/one").exists(), "it was sent before");
        // As a worker unpacks them, one over the other.
        let copied = std::process::Command::new("cp").arg("-r").arg(second.path().join(".")).arg(there.path()).status();
        assert!(copied.unwrap().success());
        assemble(there.path()).unwrap();
        let read = |name: &str| fs::read_to_string(there.path().join(name)).unwrap();
        assert_eq!(["cases.jsonl", "images/data", "queue/one", "queue/two"].map(read), ["a\nb\n", "xyz", "1", "2"]);
    }
}
