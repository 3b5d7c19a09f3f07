//! What must hold of the tree after a crash inside an operation, and after it has returned (FILESYSTEMS.md, "What must hold").
//!
//! Synchronous file systems: what the operation does not touch is as it was; what it touches is as before or as after, as a
//! whole; once it has returned, it has happened. Where the file system does not promise more, a write may leave old and new
//! bytes in what was there before it; its metadata, and what it adds behind the old end, not.
//!
//! File systems that need fsync: what was synced is as it was then, or as a later operation made it.

use crate::op::Op;
use crate::promise::{Broken, Difference, Promise};
use crate::tree::{Body, Entry, Found, Tree};

/// What a file system promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// A write happens as a whole or not at all.
    pub atomic_writes: bool,
}

/// A crash, and the trees of the same operations without one.
#[derive(Clone, Copy, Debug)]
pub struct Crash<'a> {
    pub op: &'a Op,
    pub before: &'a Tree,
    pub after: &'a Tree,
    /// The operation had returned.
    pub returned: bool,
}

impl Crash<'_> {
    /// Is this tree allowed after the crash?
    pub fn judge(&self, found: &Tree, promises: Promises) -> Result<(), Box<Broken>> {
        let before_allowed = !self.returned && found == self.before;
        if before_allowed || found == self.after {
            return Ok(());
        }
        if !self.returned && !promises.atomic_writes && self.op.changes_data() && self.mixes(found) {
            return Ok(());
        }
        Err(self.broken(self.diagnose(found)))
    }

    pub fn broken(&self, promise: Promise) -> Box<Broken> {
        Box::new(Broken { op: self.op.clone(), returned: self.returned, promise })
    }

    /// Every name is as before or as after but for the bytes of files, each of which is old or new.
    fn mixes(&self, found: &Tree) -> bool {
        let fits = |path: &String| {
            let (before, after) = (self.before.get(path), self.after.get(path));
            let found = found.get(path);
            if found == before || found == after {
                return true;
            }
            match (before, after, found) {
                (Some(Found::Entry(before)), Some(Found::Entry(after)), Some(Found::Entry(found))) => {
                    mixed(before, after, found)
                }
                _ => false,
            }
        };
        found.entries.len() == self.before.entries.len() && self.before.entries.keys().all(fits)
    }

    fn diagnose(&self, found: &Tree) -> Promise {
        let paths = || {
            let all = self.before.entries.keys().chain(self.after.entries.keys()).chain(found.entries.keys());
            let all: std::collections::BTreeSet<&String> = all.collect();
            all.into_iter()
        };
        for (path, entry) in &found.entries {
            if let Found::Unreadable(errno) = entry {
                return Promise::Readable { path: path.clone(), errno: *errno };
            }
        }
        let (mut as_before, mut as_after, mut as_neither) = (None, None, None);
        for path in paths() {
            let (before, after, now) = (self.before.get(path), self.after.get(path), found.get(path));
            if before == after {
                if let Some(difference) = Difference::between(now, &[before]) {
                    return Promise::Untouched { path: path.clone(), difference };
                }
                continue;
            }
            let which = if now == before {
                &mut as_before
            } else if now == after {
                &mut as_after
            } else {
                &mut as_neither
            };
            which.get_or_insert_with(|| path.clone());
        }
        if let Op::Rename(from, to) = self.op
            && self.before.get(from).is_some()
            && self.after.get(from).is_none()
        {
            let (from_is, to_is) = (found.get(from).is_some(), found.get(to).is_some());
            if !from_is && !to_is {
                return Promise::KeepsAName { from: from.clone(), to: to.clone() };
            }
            if from_is && to_is && self.before.get(to).is_none() {
                return Promise::OneName { from: from.clone(), to: to.clone() };
            }
        }
        let difference = |path: &String, right: &[&Tree]| {
            let right: Vec<Option<&Found>> = right.iter().map(|tree| tree.get(path)).collect();
            Difference::between(found.get(path), &right)
        };
        match (as_before, as_after, as_neither) {
            (_, _, Some(path)) => {
                let right = if self.returned { vec![self.after] } else { vec![self.before, self.after] };
                let difference = difference(&path, &right).unwrap_or(Difference::Unexpected);
                Promise::OldOrNew { path, difference }
            }
            (Some(path), None, None) => {
                let difference = difference(&path, &[self.after]).unwrap_or(Difference::Unexpected);
                Promise::Durable { path, difference }
            }
            (Some(before), Some(after), None) => Promise::Atomic { before, after },
            // Everything is as after, which would have passed.
            (None, after, None) => {
                Promise::OldOrNew { path: after.unwrap_or_else(|| ".".into()), difference: Difference::Unexpected }
            }
        }
    }
}

/// All but the bytes as in one of both, and each byte that both have from either.
fn mixed(before: &Entry, after: &Entry, found: &Entry) -> bool {
    let (Body::File(old), Body::File(new), Body::File(now)) = (&before.body, &after.body, &found.body) else {
        return false;
    };
    let same_but_bytes = |other: &Entry| Entry { body: other.body.clone(), ..found.clone() } == *other;
    if !same_but_bytes(before) && !same_but_bytes(after) {
        return false;
    }
    now.0.iter().enumerate().all(|(at, byte)| {
        let (old, new) = (old.0.get(at), new.0.get(at));
        Some(byte) == new || Some(byte) == old && (new.is_some() || found.size == before.size)
    })
}

/// What has happened so far in a run without a crash: an operation, and the tree that it left.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    pub op: &'a Op,
    pub after: &'a Tree,
}

/// For file systems that need fsync: is this tree allowed after a crash in or after the last of these operations? The others
/// had returned.
pub fn judge_synced(past: &[Past<'_>], returned: bool, found: &Tree) -> Result<(), Box<Broken>> {
    let Some(last) = past.last() else { return Ok(()) };
    let broken = |promise| Err(Box::new(Broken { op: last.op.clone(), returned, promise }));
    for (path, entry) in &found.entries {
        if let Found::Unreadable(errno) = entry {
            return broken(Promise::Readable { path: path.clone(), errno: *errno });
        }
    }
    // The last persistence point that had returned, for each path that one covers.
    let complete = if returned { past.len() } else { past.len() - 1 };
    let paths: std::collections::BTreeSet<&String> = past.iter().flat_map(|past| past.after.entries.keys()).collect();
    for path in paths {
        let covered = (0..complete).rev().find(|&at| covers(past[at].op, past[at].after, path));
        let Some(point) = covered else { continue };
        let right: Vec<Option<&Found>> = past[point..].iter().map(|past| past.after.get(path)).collect();
        // What a directory holds is told by the names in it.
        let of_dir = matches!(right.first(), Some(Some(Found::Entry(entry))) if entry.body == Body::Dir);
        if of_dir && matches!(found.entry(path), Some(entry) if entry.body == Body::Dir) {
            continue;
        }
        if let Some(difference) = Difference::between(found.get(path), &right) {
            return broken(Promise::Synced { path: path.clone(), difference });
        }
    }
    Ok(())
}

/// Does this persistence point make what is at the path durable?
fn covers(point: &Op, tree: &Tree, path: &str) -> bool {
    match point {
        Op::Sync => true,
        Op::Fsync(file) | Op::Fdatasync(file) => {
            let same = |entry: &Entry| entry.same.as_deref() == Some(file.path.as_str());
            file.path == path || tree.entry(path).is_some_and(same)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOO: &str = "file foo mode=644 links=1 owner=0:0 size=16 content=seed1:16\n";
    const ROOT: &str = "dir . mode=755 links=2 owner=0:0\n";

    fn tree(lines: &[&str]) -> Tree {
        Tree::parse(&lines.concat()).unwrap()
    }

    fn broken(op: &str, trees: (&[&str], &[&str]), returned: bool, found: &[&str]) -> Option<String> {
        let (op, before, after) = (op.parse().unwrap(), tree(trees.0), tree(trees.1));
        let crash = Crash { op: &op, before: &before, after: &after, returned };
        crash.judge(&tree(found), Promises::default()).err().map(|broken| broken.to_string())
    }

    #[test]
    fn a_rename_keeps_exactly_one_name() {
        let bar = FOO.replace("foo", "bar");
        let trees: (&[&str], &[&str]) = (&[ROOT, FOO], &[ROOT, &bar]);
        let judge = |returned, found: &[&str]| broken("rename foo bar", trees, returned, found);
        assert_eq!(judge(false, trees.0), None);
        assert_eq!(judge(false, trees.1), None);
        assert_eq!(judge(false, &[ROOT]).unwrap(), "after `rename foo bar` neither name is there");
        assert_eq!(judge(false, &[ROOT, FOO, &bar]).unwrap(), "after `rename foo bar` both names are there");
        let lost = "`rename foo bar` had returned before the crash, but `bar` is not there";
        assert_eq!(judge(true, trees.0).unwrap(), lost);
    }

    #[test]
    fn an_overwriting_rename_never_loses_its_target() {
        let old = FOO.replace("foo", "bar").replace("seed1", "seed2");
        let new = FOO.replace("foo", "bar");
        let trees: (&[&str], &[&str]) = (&[ROOT, FOO, &old], &[ROOT, &new]);
        let judge = |found: &[&str]| broken("rename foo bar", trees, false, found);
        let gone = "after a crash during `rename foo bar`, `bar` is not there";
        assert_eq!(judge(&[ROOT, FOO]).unwrap(), gone);
        let half = "`rename foo bar` is half done: `bar` is as before, `foo` as after";
        assert_eq!(judge(&[ROOT, &old]).unwrap(), half);
    }

    #[test]
    fn what_is_not_touched_stays() {
        let other = FOO.replace("foo", "other");
        let trees: (&[&str], &[&str]) = (&[ROOT, &other], &[ROOT, FOO, &other]);
        let changed = other.replace("size=16 content=seed1:16", "size=0 content=none");
        let text = broken("creat foo", trees, false, &[ROOT, &changed]).unwrap();
        let expected = "after a crash during `creat foo`, which does not touch it, `other` has size 0; expected 16";
        assert_eq!(text, expected);
        let text = broken("creat foo", trees, false, &[ROOT, "error other EIO\n"]).unwrap();
        assert_eq!(text, "after a crash during `creat foo`, `other` cannot be read (EIO)");
    }

    #[test]
    fn bytes_of_a_write_may_be_old_or_new_but_only_until_it_returned() {
        let new = FOO.replace("seed1:16", "seed2:16");
        let half = FOO.replace("seed1:16", "seed1:8,seed2:8");
        let trees: (&[&str], &[&str]) = (&[ROOT, FOO], &[ROOT, &new]);
        assert_eq!(broken("write foo 0 16 seed=2", trees, false, &[ROOT, &half]), None);
        assert!(broken("write foo 0 16 seed=2", trees, true, &[ROOT, &half]).is_some());
        let foreign = FOO.replace("seed1:16", "seed1:8,zero:8");
        assert!(broken("write foo 0 16 seed=2", trees, false, &[ROOT, &foreign]).is_some());
        let (before, after) = (tree(trees.0), tree(trees.1));
        let crash =
            Crash { op: &"write foo 0 16 seed=2".parse().unwrap(), before: &before, after: &after, returned: false };
        assert!(crash.judge(&tree(&[ROOT, &half]), Promises { atomic_writes: true }).is_err());
    }

    #[test]
    fn what_a_write_adds_behind_the_end_is_there_when_the_size_says_so() {
        let new = FOO.replace("size=16 content=seed1:16", "size=24 content=seed1:16,seed2:8");
        let hole = FOO.replace("size=16 content=seed1:16", "size=24 content=seed1:16,zero:8");
        let trees: (&[&str], &[&str]) = (&[ROOT, FOO], &[ROOT, &new]);
        let text = broken("write foo end 8 seed=2", trees, false, &[ROOT, &hole]).unwrap();
        assert!(text.contains("has content seed1:16,zero:8; expected"), "{text}");
        let unsized_ = FOO.replace("size=16", "size=24").replace("seed1:16", "seed1:24");
        assert!(broken("write foo end 8 seed=2", trees, false, &[ROOT, &unsized_]).is_some());
    }

    #[test]
    fn link_counts_count() {
        let two = FOO.replace("links=1", "links=2");
        let two_bar = two.replace("foo", "bar");
        let foo_same = two.replace(" content", " same=bar content");
        let trees: (&[&str], &[&str]) = (&[ROOT, FOO], &[ROOT, &two_bar, &foo_same]);
        let text = broken("link foo bar", trees, false, &[ROOT, &two]).unwrap();
        assert_eq!(text, "after a crash during `link foo bar`, `foo` has link count 2; expected 1");
        assert_eq!(broken("link foo bar", trees, false, &[ROOT, &two_bar, &foo_same]), None);
    }

    #[test]
    fn what_was_synced_is_there() {
        let (write, sync): (Op, Op) = ("write foo 0 16 seed=1".parse().unwrap(), "fsync foo".parse().unwrap());
        let (empty, full) = (tree(&[ROOT]), tree(&[ROOT, FOO]));
        let past = [Past { op: &write, after: &full }, Past { op: &sync, after: &full }];
        assert!(judge_synced(&past, true, &full).is_ok());
        assert!(judge_synced(&past, false, &empty).is_ok(), "fsync had not returned");
        assert!(judge_synced(&past[..1], true, &empty).is_ok(), "nothing was synced");
        let text = judge_synced(&past, true, &empty).unwrap_err().to_string();
        assert_eq!(text, "after `fsync foo`, `foo` was synced, but is not there");
    }
}
