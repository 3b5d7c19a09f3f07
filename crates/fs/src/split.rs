//! Writes that the kernel passes to a file system in parts. A file system in user space gets one `write(2)` as several requests, cut where
//! a page of the file begins, at least after a first page that is written in part. It cannot make them atomic together, so a crash may leave
//! what a shorter write would leave.

use crate::op::Op;
use crate::tree::{Body, Found, Tree, TreeEntry};

/// The trees between before and after: what the write leaves if it ends where a page begins. In order; without both ends.
pub fn between(op: &Op, before: &Tree, after: &Tree, page: u64) -> Vec<Tree> {
    if !matches!(op, Op::Write { .. }) {
        return Vec::new();
    }
    let mut cuts: Vec<u64> = Vec::new();
    for (path, new) in &after.entries {
        if let (Some(old), Found::Entry(new)) = (before.entry(path), new) {
            cuts.extend(of_file(old, new, page));
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    cuts.into_iter().map(|end| cut(before, after, end)).collect()
}

/// Where pages begin inside what is written.
fn of_file(old: &TreeEntry, new: &TreeEntry, page: u64) -> Vec<u64> {
    let (Some(old), Some(new)) = (old.content(), new.content()) else { return Vec::new() };
    let differs = |at: &usize| new[*at] != old.get(*at).copied().unwrap_or(0);
    let Some(first) = (0..new.len()).find(differs) else { return Vec::new() };
    // What is added to a file ends with it, whatever its bytes are.
    let end = if new.len() > old.len() { new.len() } else { (0..new.len()).rfind(differs).map_or(0, |last| last + 1) };
    (first as u64 / page + 1..).map(|number| number * page).take_while(|&at| at < end as u64).collect()
}

fn cut(before: &Tree, after: &Tree, end: u64) -> Tree {
    let mut tree = before.clone();
    for (path, found) in &mut tree.entries {
        let (Found::Entry(entry), Some(new)) = (found, after.entry(path)) else { continue };
        let (Body::File(content), Some(new)) = (&mut entry.body, new.content()) else { continue };
        let written = new.len().min(end as usize);
        if content.0[..] == *new {
            continue;
        }
        if content.0.len() < written {
            content.0.resize(written, 0);
        }
        content.0[..written].copy_from_slice(&new[..written]);
        entry.size = content.0.len() as u64;
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 16;

    fn tree(size: u64, content: &str) -> Tree {
        Tree::parse(&format!("file foo mode=644 links=1 owner=0:0 size={size} content={content}\n")).unwrap()
    }

    #[test]
    fn a_write_can_end_where_a_page_begins() {
        let (before, after) = (tree(8, "seed1:8"), tree(40, "seed1:8,seed2:32"));
        let write: Op = "write foo 8 32 seed=2".parse().unwrap();
        let stages = between(&write, &before, &after, PAGE);
        assert_eq!(stages, [tree(16, "seed1:8,seed2:8"), tree(32, "seed1:8,seed2:24")]);
        let truncate: Op = "truncate foo 40".parse().unwrap();
        assert!(between(&truncate, &before, &after, PAGE).is_empty());
    }

    #[test]
    fn the_hole_before_a_write_is_no_part_of_it() {
        let (before, after) = (tree(8, "seed1:8"), tree(56, "seed1:8,zero:32,seed2:16"));
        let write: Op = "write foo 40 16 seed=2".parse().unwrap();
        assert_eq!(between(&write, &before, &after, PAGE), [tree(48, "seed1:8,zero:32,seed2:8")]);
        let (before, after) = (tree(24, "seed1:24"), tree(24, "seed2:8,seed1:16"));
        assert!(between(&"write foo 0 8 seed=2".parse().unwrap(), &before, &after, PAGE).is_empty());
    }
}
