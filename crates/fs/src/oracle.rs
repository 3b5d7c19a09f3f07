//! What must hold for the tree after a crash inside an operation, and after it has returned (docs/file-systems.md, "What must hold").
//!
//! Synchronous file systems: what the operation does not touch is unchanged; what it touches is entirely as before or entirely as
//! after; once it has returned, its effect is there. If the file system does not promise more, a write may leave a mixture of old and new
//! bytes where it overwrites, but not in its metadata or where it extends the file.
//!
//! File systems that need fsync: what was synced is as it was at the sync, or as a later operation made it.

use crate::data_synced;
use crate::op::Op;
use crate::promise::{Broken, Difference, Promise};
use crate::split;
use crate::tree::{Body, Found, Tree, TreeEntry};

/// What a file system promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// A write happens as a whole or not at all.
    pub atomic_writes: bool,
    /// The kernel hands it a write in parts, cut where pages of this size begin: each part is a write of its own.
    pub page: Option<u64>,
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
        if self.allows(found, promises) {
            return Ok(());
        }
        let parts = promises.page.filter(|_| !self.returned);
        let between = parts.map_or_else(Vec::new, |page| split::between(self.op, self.before, self.after, page));
        let stages: Vec<&Tree> = [self.before].into_iter().chain(&between).chain([self.after]).collect();
        let part = |pair: &[&Tree]| Crash { before: pair[0], after: pair[1], ..*self }.allows(found, promises);
        if !between.is_empty() && stages.windows(2).any(part) {
            return Ok(());
        }
        Err(self.broken(self.diagnose(found)))
    }

    fn allows(&self, found: &Tree, promises: Promises) -> bool {
        let before_allowed = !self.returned && found == self.before;
        let mix_allowed = !self.returned && !promises.atomic_writes && self.op.changes_data();
        before_allowed || found == self.after || mix_allowed && self.mixes(found)
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
fn mixed(before: &TreeEntry, after: &TreeEntry, found: &TreeEntry) -> bool {
    let (Body::File(old), Body::File(new), Body::File(now)) = (&before.body, &after.body, &found.body) else {
        return false;
    };
    let same_but_bytes = |other: &TreeEntry| TreeEntry { body: other.body.clone(), ..found.clone() } == *other;
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
    /// The file system was told: a daemon does not learn of `sync`.
    pub told: bool,
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
        let names = |right: Option<&Found>| right.is_some();
        // A synced directory has its names, whatever these hold.
        if let Some(point) =
            (0..complete).rev().find(|&at| past[at].told && covers_names(past[at].op, past[at].after, path))
            && past[point..].iter().all(|past| names(past.after.get(path)) != names(found.get(path)))
        {
            let difference = if names(found.get(path)) { Difference::Unexpected } else { Difference::Missing };
            return broken(Promise::Synced { path: path.clone(), difference });
        }
        let covered = (0..complete).rev().find(|&at| past[at].told && covers(past[at].op, past[at].after, path));
        let Some(point) = covered else { continue };
        let right: Vec<Option<&Found>> = past[point..].iter().map(|past| past.after.get(path)).collect();
        // What a directory holds is told by the names in it.
        let of_dir = matches!(right.first(), Some(Some(Found::Entry(entry))) if entry.body == Body::Dir);
        if of_dir && matches!(found.entry(path), Some(entry) if entry.body == Body::Dir) {
            continue;
        }
        let rewritten = past[point + 1..].iter().any(|past| past.op.changes_data());
        if let Some(difference) = Difference::between(found.get(path), &right)
            && !(rewritten && mixes_any(found.entry(path), &right))
        {
            return broken(Promise::Synced { path: path.clone(), difference });
        }
        // What had no name then is not promised one.
        let was_there = past[point].after.get(path).is_some();
        if was_there && found.get(path).is_none() && !has_a_name(&past[point..], path, found) {
            return broken(Promise::Synced { path: path.clone(), difference: Difference::Missing });
        }
    }
    match data_synced::lost(past, complete, found) {
        Some((path, difference)) => broken(Promise::Synced { path, difference }),
        None => Ok(()),
    }
}

/// After writes that were not synced: all but the bytes as at one time, and each byte from some time; none: zero.
pub(crate) fn mixes_any(found: Option<&TreeEntry>, right: &[Option<&Found>]) -> bool {
    let Some(found) = found else { return false };
    let Body::File(now) = &found.body else { return false };
    let times: Vec<&TreeEntry> = right
        .iter()
        .filter_map(|right| match right {
            Some(Found::Entry(entry)) => Some(entry),
            _ => None,
        })
        .collect();
    let same_but_bytes = |other: &&TreeEntry| TreeEntry { body: other.body.clone(), ..found.clone() } == **other;
    let byte_at =
        |entry: &TreeEntry, at: usize| entry.content().and_then(|content| content.get(at).copied()).unwrap_or(0);
    times.iter().any(same_but_bytes)
        && now.0.iter().enumerate().all(|(at, &byte)| times.iter().any(|entry| byte_at(entry, at) == byte))
}

/// A file that was synced keeps one of the names that it was given since, unless one of them was taken away.
fn has_a_name(since: &[Past<'_>], path: &str, found: &Tree) -> bool {
    let mut names = vec![path.to_owned()];
    for past in since {
        match past.op {
            Op::Rename(from, to) if names.contains(from) => names.push(to.clone()),
            Op::Link(from, to) if names.contains(from) => names.push(to.clone()),
            Op::Unlink(name) | Op::Remove(name) | Op::Rename(_, name) | Op::Rmdir(name) if names.contains(name) => {
                return true;
            }
            // With the directory that it is in.
            Op::Rename(from, _) if path.strip_prefix(from.as_str()).is_some_and(|rest| rest.starts_with('/')) => {
                return true;
            }
            _ => {}
        }
    }
    names.iter().any(|name| found.get(name).is_some())
}

/// Does this persistence point make the name at the path durable, as one of a directory?
fn covers_names(point: &Op, tree: &Tree, path: &str) -> bool {
    let Op::Fsync(dir) = point else { return false };
    let parent = path.rsplit_once('/').map_or(".", |(parent, _)| parent);
    path != "." && dir.path == parent && tree.entry(parent).is_some_and(|entry| entry.body == Body::Dir)
}

/// Does this persistence point make what is at the path durable, with all that its inode holds? Fdatasync does not ([`data_synced`]).
fn covers(point: &Op, tree: &Tree, path: &str) -> bool {
    match point {
        Op::Sync => true,
        Op::Fsync(file) => {
            let same = |entry: &TreeEntry| entry.same.as_deref() == Some(file.path.as_str());
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
        assert!(crash.judge(&tree(&[ROOT, &half]), Promises { atomic_writes: true, ..Promises::default() }).is_err());
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
    fn parts_of_a_write_may_be_lost_where_the_kernel_cuts_it() {
        let long = |size: u64| {
            FOO.replace("size=16 content=seed1:16", &format!("size={size} content=seed1:16,seed2:{}", size - 16))
        };
        let (op, before, after) =
            ("write foo 16 48 seed=2".parse().unwrap(), tree(&[ROOT, FOO]), tree(&[ROOT, &long(64)]));
        let crash = |returned| Crash { op: &op, before: &before, after: &after, returned };
        let promises = Promises { page: Some(32), atomic_writes: true };
        assert!(crash(false).judge(&tree(&[ROOT, &long(32)]), promises).is_ok());
        assert!(crash(false).judge(&tree(&[ROOT, &long(40)]), promises).is_err(), "no page begins there");
        assert!(crash(false).judge(&tree(&[ROOT, &long(32)]), Promises::default()).is_err(), "nobody cuts it");
        assert!(crash(true).judge(&tree(&[ROOT, &long(32)]), promises).is_err(), "it had returned");
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
        let past = [Past { op: &write, after: &full, told: true }, Past { op: &sync, after: &full, told: true }];
        assert!(judge_synced(&past, true, &full).is_ok());
        assert!(judge_synced(&past, false, &empty).is_ok(), "fsync had not returned");
        assert!(judge_synced(&past[..1], true, &empty).is_ok(), "nothing was synced");
        let text = judge_synced(&past, true, &empty).unwrap_err().to_string();
        assert_eq!(text, "after `fsync foo`, `foo` was synced, but is not there");
    }

    #[test]
    fn what_was_synced_is_not_lost_when_it_is_renamed() {
        let (sync, rename): (Op, Op) = ("fsync foo".parse().unwrap(), "rename foo bar".parse().unwrap());
        let (old, new) = (tree(&[ROOT, FOO]), tree(&[ROOT, &FOO.replace("foo", "bar")]));
        let past = [Past { op: &sync, after: &old, told: true }, Past { op: &rename, after: &new, told: true }];
        for returned in [false, true] {
            assert!(judge_synced(&past, returned, &old).is_ok(), "the new name was not synced");
            assert!(judge_synced(&past, returned, &new).is_ok());
            assert!(judge_synced(&past, returned, &tree(&[ROOT])).is_err(), "neither name");
        }
        let unlink: Op = "unlink foo".parse().unwrap();
        let past =
            [Past { op: &sync, after: &old, told: true }, Past { op: &unlink, after: &tree(&[ROOT]), told: true }];
        assert!(judge_synced(&past, false, &tree(&[ROOT])).is_ok());
    }

    #[test]
    fn a_synced_directory_has_its_names() {
        let (creat, sync): (Op, Op) = ("creat foo".parse().unwrap(), "fsync .".parse().unwrap());
        let (empty, full) = (tree(&[ROOT]), tree(&[ROOT, FOO]));
        let hollow = tree(&[ROOT, &FOO.replace("size=16 content=seed1:16", "size=0 content=none")]);
        let past = [Past { op: &creat, after: &full, told: true }, Past { op: &sync, after: &full, told: true }];
        assert!(judge_synced(&past, true, &empty).is_err());
        assert!(judge_synced(&past, true, &hollow).is_ok(), "its content was not synced");
        assert!(judge_synced(&past, false, &empty).is_ok());
        let untold = past.map(|past| Past { told: false, ..past });
        assert!(judge_synced(&untold, true, &empty).is_ok());
    }

    #[test]
    fn a_write_that_was_not_synced_may_leave_old_and_new_bytes() {
        let (sync, write): (Op, Op) = ("fsync foo".parse().unwrap(), "write foo 0 16 seed=2".parse().unwrap());
        let (old, new) = (tree(&[ROOT, FOO]), tree(&[ROOT, &FOO.replace("seed1", "seed2")]));
        let past = [Past { op: &sync, after: &old, told: true }, Past { op: &write, after: &new, told: true }];
        let with = |content: &str| tree(&[ROOT, &FOO.replace("seed1:16", content)]);
        assert!(judge_synced(&past, true, &with("seed2:8,seed1:8")).is_ok());
        assert!(judge_synced(&past, true, &with("seed1:8,zero:8")).is_err());
        assert!(judge_synced(&past[..1], true, &with("seed2:8,seed1:8")).is_err(), "nobody wrote");
    }
}
