//! The files that a run leaves behind, to be compared with those of another run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const PAGE: u64 = 4096;

/// A file's length and its pages that are not zero.
#[derive(Debug, Default, PartialEq, Eq)]
struct Content {
    len: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

/// All regular files below a folder.
#[derive(Debug, Default)]
pub struct Files(BTreeMap<PathBuf, Content>);

impl Files {
    pub fn below(folder: &Path) -> io::Result<Files> {
        let mut files = Files::default();
        files.collect(folder, Path::new(""))?;
        Ok(files)
    }

    fn collect(&mut self, root: &Path, inner: &Path) -> io::Result<()> {
        for entry in fs::read_dir(root.join(inner))? {
            let entry = entry?;
            let path = inner.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.collect(root, &path)?;
            } else if entry.file_type()?.is_file() {
                let content = Content::read(&entry.path())?;
                self.0.insert(path, content);
            }
        }
        Ok(())
    }

    /// The first place where they differ, in words.
    pub fn difference(&self, other: &Files) -> Option<String> {
        for path in self.0.keys().chain(other.0.keys()) {
            let name = path.display();
            match (self.0.get(path), other.0.get(path)) {
                (Some(_), None) => return Some(format!("{name} is missing")),
                (None, _) => return Some(format!("{name} should not be there")),
                (Some(a), Some(b)) if a.len != b.len => {
                    return Some(format!("{name} has {} bytes instead of {}", b.len, a.len));
                }
                (Some(a), Some(b)) => {
                    if let Some((offset, left, right)) = a.first_difference(b) {
                        return Some(format!("{name} has {right:#04x} instead of {left:#04x} at offset {offset:#x}"));
                    }
                }
            }
        }
        None
    }
}

impl Content {
    /// Reads only what the file system holds data for: sparse pools are large.
    fn read(path: &Path) -> io::Result<Content> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut pages = BTreeMap::new();
        let mut at = 0;
        while let Some((from, to)) = data_after(&file, at, len) {
            let mut number = from / PAGE;
            file.seek(SeekFrom::Start(number * PAGE))?;
            while number * PAGE < to {
                let mut page = Vec::new();
                (&mut file).take(PAGE).read_to_end(&mut page)?;
                if page.iter().any(|byte| *byte != 0) {
                    pages.insert(number, page);
                }
                number += 1;
            }
            at = number * PAGE;
        }
        Ok(Content { len, pages })
    }

    fn first_difference(&self, other: &Content) -> Option<(u64, u8, u8)> {
        let zero = vec![0; PAGE as usize];
        let number =
            self.pages.keys().chain(other.pages.keys()).filter(|n| self.pages.get(n) != other.pages.get(n)).min()?;
        let (a, b) = (self.pages.get(number).unwrap_or(&zero), other.pages.get(number).unwrap_or(&zero));
        let at = a.iter().zip(b).position(|(x, y)| x != y)?;
        Some((number * PAGE + at as u64, a[at], b[at]))
    }
}

fn data_after(file: &File, at: u64, len: u64) -> Option<(u64, u64)> {
    if at >= len {
        return None;
    }
    // SAFETY: lseek takes no pointers; the descriptor is open as long as `file` lives.
    let seek = |offset: u64, whence| unsafe { libc::lseek(file.as_raw_fd(), offset as i64, whence) };
    let from = u64::try_from(seek(at, libc::SEEK_DATA)).ok()?;
    let to = u64::try_from(seek(from, libc::SEEK_HOLE)).unwrap_or(len);
    Some((from, to))
}
