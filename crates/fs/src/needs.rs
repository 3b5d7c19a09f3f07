//! What an operation needs to have an effect: parents, files with content, free names. A model of the tree says what exists
//! already, so that only what is missing is created.

use std::collections::BTreeMap;

use crate::content::{SEEDS, Seed};
use crate::op::{File, Offset, Op, Path, Way};

/// Bytes of a file that is made for an operation.
pub const CONTENT: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeKind {
    Dir,
    File,
}

/// Names that exist, as far as the operations so far tell.
#[derive(Clone, Debug, Default)]
pub struct Model {
    names: BTreeMap<Path, NodeKind>,
    seeds: u8,
}

impl Model {
    /// The next seed: every write has another, as long as there are any.
    pub fn seed(&mut self) -> Seed {
        self.seeds = self.seeds % SEEDS + 1;
        Seed(self.seeds)
    }

    pub fn is_dir(&self, path: &str) -> bool {
        path == "." || self.names.get(path) == Some(&NodeKind::Dir)
    }

    pub fn is_file(&self, path: &str) -> bool {
        self.names.get(path) == Some(&NodeKind::File)
    }

    pub fn files(&self) -> Vec<&Path> {
        self.names.iter().filter(|(_, kind)| **kind == NodeKind::File).map(|(path, _)| path).collect()
    }

    pub fn dirs(&self) -> Vec<&Path> {
        self.names.iter().filter(|(_, kind)| **kind == NodeKind::Dir).map(|(path, _)| path).collect()
    }

    fn is_empty_dir(&self, path: &str) -> bool {
        !self.names.keys().any(|name| is_below(name, path))
    }

    /// What must be done before this operation; the model then has it.
    pub fn prepare(&mut self, op: &Op) -> Vec<Op> {
        let mut made = Vec::new();
        match op {
            Op::Creat(path) => self.parents(path, &mut made),
            Op::Symlink(_, path) => {
                self.parents(path, &mut made);
                self.free(path, &mut made);
            }
            Op::Mkdir(path) => {
                self.parents(path, &mut made);
                self.free(path, &mut made);
            }
            Op::Rmdir(path) => {
                self.dir(path, &mut made);
                self.empty(path, &mut made);
            }
            Op::Unlink(path) | Op::Remove(path) => self.file(path, &mut made),
            Op::Link(from, to) => {
                self.file(from, &mut made);
                self.parents(to, &mut made);
                self.free(to, &mut made);
            }
            Op::Rename(from, to) if is_directory_name(from) => {
                self.dir(from, &mut made);
                self.parents(to, &mut made);
            }
            Op::Rename(from, to) => {
                self.file(from, &mut made);
                self.parents(to, &mut made);
            }
            Op::Open { file: path, .. }
            | Op::Setxattr { path, .. }
            | Op::Chmod(path, _)
            | Op::Chown(path, ..)
            | Op::Write { file: File { path, .. }, .. }
            | Op::Read { file: File { path, .. }, .. }
            | Op::Truncate { file: File { path, .. }, .. }
            | Op::Fallocate { file: File { path, .. }, .. } => self.file(path, &mut made),
            Op::Removexattr { path, name } => {
                self.file(path, &mut made);
                let set = Op::Setxattr { path: path.clone(), name: name.clone(), value: "before".into() };
                made.push(set);
            }
            Op::Fsync(_) | Op::Fdatasync(_) | Op::Sync | Op::Close(_) | Op::Reset => {}
        }
        made
    }

    /// What the tree is like after the operation, if it succeeds.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Creat(path) | Op::Symlink(_, path) if !self.is_dir(path) => {
                self.names.insert(path.clone(), NodeKind::File);
            }
            Op::Mkdir(path) if !self.names.contains_key(path) => {
                self.names.insert(path.clone(), NodeKind::Dir);
            }
            Op::Link(from, to) if self.is_file(from) && !self.names.contains_key(to) => {
                self.names.insert(to.clone(), NodeKind::File);
            }
            Op::Rmdir(path) if self.is_dir(path) && self.is_empty_dir(path) => drop(self.names.remove(path)),
            Op::Unlink(path) if self.is_file(path) => drop(self.names.remove(path)),
            Op::Remove(path) if self.is_file(path) || self.is_empty_dir(path) => drop(self.names.remove(path)),
            Op::Rename(from, to) => self.rename(from, to),
            Op::Reset => self.names.clear(),
            _ => {}
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        let Some(&kind) = self.names.get(from) else { return };
        let blocked = match self.names.get(to) {
            Some(NodeKind::Dir) => kind == NodeKind::File || !self.is_empty_dir(to),
            Some(NodeKind::File) => kind == NodeKind::Dir,
            None => false,
        };
        if from == to || is_below(to, from) || blocked {
            return;
        }
        let moved: Vec<Path> =
            self.names.keys().filter(|name| *name == from || is_below(name, from)).cloned().collect();
        for name in moved {
            if let Some(kind) = self.names.remove(&name) {
                self.names.insert(format!("{to}{}", &name[from.len()..]), kind);
            }
        }
    }

    fn take(&mut self, op: Op, made: &mut Vec<Op>) {
        self.apply(&op);
        made.push(op);
    }

    fn parents(&mut self, path: &str, made: &mut Vec<Op>) {
        for (end, _) in path.match_indices('/') {
            self.dir(&path[..end], made);
        }
    }

    fn dir(&mut self, path: &str, made: &mut Vec<Op>) {
        self.parents(path, made);
        if self.is_file(path) {
            self.take(Op::Unlink(path.to_owned()), made);
        }
        if !self.is_dir(path) {
            self.take(Op::Mkdir(path.to_owned()), made);
        }
    }

    fn file(&mut self, path: &str, made: &mut Vec<Op>) {
        self.parents(path, made);
        if self.names.contains_key(path) {
            return;
        }
        self.take(Op::Creat(path.to_owned()), made);
        let (file, seed) = (File { path: path.to_owned(), fd: None }, self.seed());
        made.push(Op::Write { file, at: Offset::At(0), len: CONTENT, seed, way: Way::Buffered });
    }

    /// Nothing has this name.
    fn free(&mut self, path: &str, made: &mut Vec<Op>) {
        if self.is_file(path) {
            self.take(Op::Unlink(path.to_owned()), made);
        } else if self.is_dir(path) {
            self.empty(path, made);
            self.take(Op::Rmdir(path.to_owned()), made);
        }
    }

    fn empty(&mut self, path: &str, made: &mut Vec<Op>) {
        let below: Vec<Path> = self.names.keys().filter(|name| is_below(name, path)).cloned().collect();
        // Names below a directory come after it.
        for name in below.into_iter().rev() {
            let op = if self.is_dir(&name) { Op::Rmdir(name) } else { Op::Unlink(name) };
            self.take(op, made);
        }
    }
}

fn is_below(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

/// In the bounded sets directories have names of one capital letter.
fn is_directory_name(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.len() == 1 && name.as_bytes()[0].is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(ops: &[&str]) -> Vec<String> {
        let (mut model, mut all) = (Model::default(), Vec::new());
        for op in ops {
            let op: Op = op.parse().unwrap();
            all.extend(model.prepare(&op).iter().map(Op::to_string));
            model.apply(&op);
            all.push(op.to_string());
        }
        all
    }

    #[test]
    fn what_is_missing_is_made() {
        let link = ["mkdir A", "creat A/foo", "write A/foo 0 4096 seed=1", "mkdir A/C", "link A/foo A/C/bar"];
        assert_eq!(prepared(&["link A/foo A/C/bar"]), link);
        let again = ["creat foo", "write foo 0 4096 seed=1", "link foo bar", "unlink bar", "link foo bar"];
        assert_eq!(prepared(&["link foo bar", "link foo bar"]), again);
        let renamed = ["mkdir A", "rename A B", "mkdir A", "creat A/foo", "write A/foo 0 4096 seed=1", "unlink A/foo"];
        assert_eq!(prepared(&["rename A B", "unlink A/foo"]), renamed);
        let emptied = ["mkdir A", "creat A/foo", "unlink A/foo", "rmdir A"];
        assert_eq!(prepared(&["creat A/foo", "rmdir A"]), emptied);
    }
}
