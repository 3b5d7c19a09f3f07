//! Operations against a real directory: answers, the tree that they leave, and whether it is usable.

use std::io::BufReader;

use fs::execute::{Answer, Executor};
use fs::generate::Generator;
use fs::oracle::{Crash, Promises};
use fs::tree::Tree;
use fs::usable::usable;
use fs::walk::walk;

fn run(root: &std::path::Path, ops: &[&str]) -> Vec<String> {
    let mut executor = Executor::new(root);
    ops.iter().map(|op| executor.run(&op.parse().unwrap()).to_string()).collect()
}

#[test]
fn answers_and_tree() {
    let root = tempfile::tempdir().unwrap();
    let ops = [
        "mkdir A",
        "creat A/foo",
        "write A/foo 5 1024 seed=3 fd=2",
        "write A/foo end 11 seed=4",
        "link A/foo bar",
        "rename bar A/bar",
        "mkdir A",
        "unlink nothing",
        "rmdir A",
        "truncate A/foo 1032 fd=2",
        "close fd=2",
        "close fd=2",
        "symlink A/foo s",
        "read A/foo 1000 100",
        "mmap A/foo 0 8 seed=9",
        "mmap A/foo 1030 8 seed=9",
        "remove A/bar",
        "chmod A/foo 600",
        "fsync A/foo",
        "fdatasync A/foo",
        "sync",
    ];
    let answers = run(root.path(), &ops);
    let expected = [
        "ok",
        "ok",
        "ok 1024",
        "ok 11",
        "ok",
        "ok",
        "EEXIST",
        "ENOENT",
        "ENOTEMPTY",
        "ok",
        "ok",
        "EBADF",
        "ok",
        "ok 32",
        "ok 8",
        "ENXIO",
        "ok",
        "ok",
        "ok",
        "ok",
        "ok",
    ];
    assert_eq!(answers, expected);
    for answer in &answers {
        assert_eq!(answer.parse::<Answer>().unwrap().to_string(), *answer);
    }
    let tree = walk(root.path());
    let entry = tree.entry("A/foo").unwrap();
    assert_eq!((entry.mode, entry.links, entry.size), (0o600, 1, 1032));
    let text = tree.to_string();
    assert!(text.contains("content=seed9:8,seed3:1016,x"), "{text}");
    assert!(text.contains("symlink s mode=777 links=1") && text.contains("target=A/foo"), "{text}");
    assert_eq!(Tree::parse(&text).unwrap(), tree);
    assert_eq!(usable(root.path()), Ok(()));
    assert_eq!(walk(root.path()).entries.len(), 1, "everything was removed");
}

/// Where files are built: the folder for temporary files may be of a kind that has no extended attributes.
#[test]
fn extended_attributes_are_part_of_the_tree() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let answers = run(root.path(), &["creat foo", "setxattr foo user.a one", "setxattr foo user.b two"]);
    assert_eq!(answers, ["ok"; 3]);
    let tree = walk(root.path());
    let text = tree.to_string();
    let attributes: Vec<&str> = tree.entry("foo").unwrap().xattrs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(attributes, ["user.a", "user.b"], "{text}");
    assert_eq!(Tree::parse(&text).unwrap(), tree);
    assert_eq!(run(root.path(), &["removexattr foo user.b", "removexattr foo user.b"]), ["ok", "ENODATA"]);
    let fewer = walk(root.path());
    assert_ne!(fewer, tree);
    let op = "chmod foo 600".parse().unwrap();
    let crash = Crash { op: &op, before: &tree, after: &tree, returned: false };
    let lost = crash.judge(&fewer, Promises::default()).unwrap_err().to_string();
    assert!(lost.contains("`foo` has extended attributes `user.a=one `; expected"), "{lost}");
}

#[test]
fn names_of_one_file_are_known() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), &["creat foo", "link foo bar", "creat baz"]);
    let tree = walk(root.path());
    assert_eq!(tree.entry("foo").unwrap().same.as_deref(), Some("bar"));
    assert_eq!(tree.entry("bar").unwrap().same, None);
    assert_eq!(tree.entry("baz").unwrap().same, None);
}

#[test]
fn the_agent_answers_lines() {
    let root = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    let lines = "creat foo\nfly\nwalk\nusable\nwalk\n";
    fs::agent::run(root.path(), &mut BufReader::new(lines.as_bytes()), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "ok");
    assert!(lines[1].starts_with("? `fly`"));
    assert!(lines[2].starts_with("dir . ") && lines[3].starts_with("file foo "));
    assert_eq!(&lines[4..6], ["ok", "ok"]);
    assert_eq!(lines.len(), 8);
}

/// Twice the same operations: answers and trees must be equal, or no reference run could say what is right.
#[test]
fn generated_workloads_give_the_same_tree_twice() {
    for number in 0..30 {
        let workload = Generator { seed: 5, operations: 25, fsync: false }.workload(number);
        let once = || {
            let root = tempfile::tempdir().unwrap();
            let mut executor = Executor::new(root.path());
            let answers: Vec<Answer> = workload.steps.iter().map(|step| executor.run(&step.op)).collect();
            (answers, walk(root.path()))
        };
        assert_eq!(once(), once(), "{workload}");
    }
}

#[test]
fn what_a_recovered_tree_can_not_do_is_told_as_text() {
    for text in ["create ENOSPC A/C", "zero-behind EIO a b", "create-again EROFS ."] {
        let unusable: fs::usable::Unusable = text.parse().unwrap();
        assert_eq!(unusable.to_string(), text);
    }
    assert!("fly ENOENT .".parse::<fs::usable::Unusable>().is_err());
}
