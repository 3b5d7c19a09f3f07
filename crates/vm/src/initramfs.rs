//! The guest's initial file system: an archive in cpio's "newc" format (Linux: Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// An archive in the making.
#[derive(Debug, Default)]
pub struct Initramfs {
    bytes: Vec<u8>,
    next: u32,
    folders: BTreeSet<PathBuf>,
}

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_755;
const LINK: u32 = 0o120_777;
/// What the last entry is called.
const TRAILER: &str = "TRAILER!!!";

impl Initramfs {
    /// A file at an absolute path; its folders are made.
    pub fn file(&mut self, path: &Path, content: &[u8]) {
        self.parents(path);
        self.entry(&relative(path), FILE, content);
    }

    pub fn link(&mut self, path: &Path, target: &str) {
        self.parents(path);
        self.entry(&relative(path), LINK, target.as_bytes());
    }

    pub fn folder(&mut self, path: &Path) {
        self.parents(&path.join("x"));
    }

    /// The finished archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[]);
        self.bytes
    }

    fn parents(&mut self, path: &Path) {
        let folders: Vec<PathBuf> = path.ancestors().skip(1).map(Path::to_owned).collect();
        for folder in folders.into_iter().rev().filter(|folder| !relative(folder).is_empty()) {
            if self.folders.insert(folder.clone()) {
                self.entry(&relative(&folder), DIRECTORY, &[]);
            }
        }
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.next += 1;
        let links = if mode == DIRECTORY { 2 } else { 1 };
        let (size, name_size) = (content.len() as u32, name.len() as u32 + 1);
        // inode, mode, uid, gid, links, time, size, device (2), special device (2), length of the name, checksum
        let fields = [self.next, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

fn relative(path: &Path) -> String {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// cpio is not on every machine; bsdtar neither. Python's own reader would be a second writer of ours, so the format is read here
    /// from its description.
    fn names(bytes: &[u8]) -> Vec<(String, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        loop {
            let field = |number: usize| {
                let from = at + 6 + number * 8;
                usize::from_str_radix(std::str::from_utf8(&bytes[from..from + 8]).unwrap(), 16).unwrap()
            };
            assert_eq!(&bytes[at..at + 6], b"070701");
            let (size, name_size) = (field(6), field(11));
            let name = String::from_utf8(bytes[at + 110..at + 110 + name_size - 1].to_vec()).unwrap();
            at = (at + 110 + name_size).next_multiple_of(4);
            at = (at + size).next_multiple_of(4);
            if name == TRAILER {
                return found;
            }
            found.push((name, size));
        }
    }

    #[test]
    fn folders_come_before_what_is_in_them_and_once() {
        let mut archive = Initramfs::default();
        archive.file(Path::new("/init"), b"hello");
        archive.file(Path::new("/lib/x86/a.so"), &[1; 7]);
        archive.file(Path::new("/lib/b.so"), &[]);
        let bytes = archive.finish();
        let expected = [("init", 5), ("lib", 0), ("lib/x86", 0), ("lib/x86/a.so", 7), ("lib/b.so", 0)];
        assert_eq!(names(&bytes), expected.map(|(name, size)| (name.to_owned(), size)));
        // Where cpio is installed, it agrees.
        let cpio =
            Command::new("cpio").arg("-t").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        if let Ok(mut cpio) = cpio {
            cpio.stdin.take().unwrap().write_all(&bytes).unwrap();
            let said = String::from_utf8(cpio.wait_with_output().unwrap().stdout).unwrap();
            assert_eq!(said.lines().collect::<Vec<_>>(), expected.map(|(name, _)| name));
        }
    }
}
