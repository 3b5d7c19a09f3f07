//! What fdatasync promises (POSIX, "synchronized I/O data integrity"): the bytes and the size of a file. Not its names, and nothing else that
//! its inode holds: ext4 loses a link that was made before it, and a rename.

use crate::op::Op;
use crate::oracle::{Past, mixes_any};
use crate::promise::Difference;
use crate::tree::{Body, Found, Tree, TreeEntry, TreePath};

/// Was this file's data made durable by one of the first `complete` operations, and is it lost? Whether the file has a name is a matter
/// of other promises.
pub fn lost(past: &[Past<'_>], complete: usize, found: &Tree) -> Option<(TreePath, Difference)> {
    (0..complete).rev().find_map(|point| {
        let Op::Fdatasync(file) = past[point].op else { return None };
        let synced = past[point].after.entry(&file.path).filter(|entry| is_file(entry))?;
        if !past[point].told {
            return None;
        }
        let names = names(past, point, &file.path);
        let now: Vec<(&TreePath, &TreeEntry)> =
            names.iter().filter_map(|name| Some((name, found.entry(name).filter(|entry| is_file(entry))?))).collect();
        let rewritten = past[point + 1..].iter().any(|past| past.op.changes_data());
        let later = past[point + 1..].iter().flat_map(|past| names.iter().filter_map(|name| past.after.entry(name)));
        let times: Vec<&TreeEntry> = [synced].into_iter().chain(later.filter(|entry| is_file(entry))).collect();
        let mut first = None;
        for (name, now) in now {
            // With everything else as it is now.
            let right: Vec<Found> = times
                .iter()
                .map(|time| Found::Entry(TreeEntry { body: time.body.clone(), size: time.size, ..now.clone() }))
                .collect();
            let right: Vec<Option<&Found>> = right.iter().map(Some).collect();
            let difference = Difference::between(found.get(name), &right)?;
            if rewritten && mixes_any(Some(now), &right) {
                return None;
            }
            first.get_or_insert((name.clone(), difference));
        }
        first
    })
}

fn is_file(entry: &TreeEntry) -> bool {
    matches!(entry.body, Body::File(_))
}

/// All names that the file had before this operation, has then, and gets later.
fn names(past: &[Past<'_>], point: usize, path: &str) -> Vec<TreePath> {
    let mut names = vec![path.to_owned()];
    let mut follow = |from: &str, to: &str| {
        let moved: Vec<TreePath> = names.iter().filter_map(|name| moved(name, from, to)).collect();
        names.extend(moved);
    };
    for past in past[..=point].iter().rev() {
        match past.op {
            Op::Rename(from, to) => follow(to, from),
            Op::Link(from, to) => {
                follow(to, from);
                follow(from, to);
            }
            _ => {}
        }
    }
    for past in &past[point + 1..] {
        if let Op::Rename(from, to) | Op::Link(from, to) = past.op {
            follow(from, to);
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// What becomes of a name if `from`, which may be a directory, becomes `to`.
fn moved(name: &str, from: &str, to: &str) -> Option<TreePath> {
    let rest = name.strip_prefix(from)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{to}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::judge_synced;

    const ROOT: &str = "dir . mode=755 links=2 owner=0:0\n";
    const FOO: &str = "file foo mode=644 links=1 owner=0:0 size=16 content=seed1:16\n";

    fn tree(lines: &[&str]) -> Tree {
        Tree::parse(&[&[ROOT], lines].concat().concat()).unwrap()
    }

    /// These operations, with the trees that they leave, and then a crash.
    fn is_right(ops: &[(&str, &Tree)], found: &Tree) -> bool {
        let parsed: Vec<Op> = ops.iter().map(|(op, _)| op.parse().unwrap()).collect();
        let past: Vec<Past<'_>> =
            parsed.iter().zip(ops).map(|(op, (_, after))| Past { op, after, told: true }).collect();
        judge_synced(&past, true, found).is_ok()
    }

    #[test]
    fn links_and_renames_are_not_of_the_data() {
        let old = tree(&[FOO]);
        let two = FOO.replace("links=1", "links=2");
        let linked = tree(&[&two.replace("foo", "bar"), &two.replace("owner", "same=bar owner")]);
        let renamed = tree(&[&FOO.replace("foo", "bar")]);
        for sync in ["fdatasync bar", "fsync bar"] {
            let is_data = sync == "fdatasync bar";
            assert_eq!(
                is_right(&[("sync", &old), ("link foo bar", &linked), (sync, &linked)], &old),
                is_data,
                "{sync}"
            );
            assert_eq!(
                is_right(&[("sync", &old), ("rename foo bar", &renamed), (sync, &renamed)], &old),
                is_data,
                "{sync}"
            );
        }
    }

    #[test]
    fn bytes_and_size_are() {
        let (empty, old) = (tree(&[&FOO.replace("16 content=seed1:16", "0 content=none")]), tree(&[FOO]));
        let ops = [("creat foo", &empty), ("write foo 0 16 seed=1", &old), ("fdatasync foo", &old)];
        assert!(is_right(&ops, &old));
        assert!(!is_right(&ops, &empty));
        assert!(!is_right(&ops, &tree(&[&FOO.replace("seed1:16", "seed1:8,zero:8")])));
        // Under its old name as well.
        let bar = tree(&[&FOO.replace("foo", "bar")]);
        let moved = [ops[0], ops[1], ("rename foo bar", &bar), ("fdatasync bar", &bar)];
        assert!(is_right(&moved, &old) && is_right(&moved, &bar));
        assert!(!is_right(&moved, &empty));
        // A later write may be there in part.
        let new = tree(&[&FOO.replace("seed1", "seed2")]);
        let later = [ops[0], ops[1], ops[2], ("write foo 0 16 seed=2", &new)];
        assert!(is_right(&later, &tree(&[&FOO.replace("seed1:16", "seed2:8,seed1:8")])));
        assert!(!is_right(&later, &empty));
    }
}
