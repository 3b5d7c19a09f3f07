//! The names of the probe's locks, against its source.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::lock::{LockName, Locked, SpinLock};

fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if !path.ends_with("lock.rs") {
            let text = fs::read_to_string(&path).expect("text");
            found.push((path, text));
        }
    }
}

/// The files that make a lock of this name, with their text.
fn makers() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../probe/src"), &mut files);
    let mut makers: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    for (path, text) in files {
        let mut names: Vec<String> = text
            .split("LockName::")
            .skip(1)
            .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric()).collect())
            .collect();
        names.sort();
        names.dedup();
        for name in names {
            makers.entry(name).or_default().push((path.clone(), text.clone()));
        }
    }
    makers
}

#[test]
fn each_name_is_that_of_one_lock() {
    let makers = makers();
    for name in LockName::ALL.iter().filter(|name| **name != LockName::Records) {
        let files = makers.get(&format!("{name:?}")).map_or(&[][..], Vec::as_slice);
        assert_eq!(files.len(), 1, "{name:?} is made in {:?}", files.iter().map(|(path, _)| path).collect::<Vec<_>>());
    }
    assert_eq!(makers.len(), LockName::ALL.len() - 1, "{:?}", makers.keys());
    assert!(LockName::ALL.is_sorted(), "the order of the list is that of the names");
}

/// The child of a fork has nobody who would free a lock that another thread held.
#[test]
fn fork_holds_or_frees_every_lock() {
    for (name, files) in makers() {
        let (path, text) = &files[0];
        let freed = ["pub fn hold", "pub fn lock()", ".reset(", ".release("].iter().any(|way| text.contains(way));
        assert!(freed, "{name}: {} has no way to hold or free it at a fork", path.display());
    }
}

#[test]
#[should_panic(expected = "AddressSpace is taken while Some(Heap) is held")]
fn a_lock_above_one_that_is_held_is_refused() {
    let (above, below) = (SpinLock::new(LockName::AddressSpace), Locked::new(LockName::Heap, 0));
    let _below = below.lock();
    let _above = above.lock();
}

#[test]
fn locks_in_order_are_taken() {
    let locks = LockName::ALL.map(SpinLock::new);
    let held = locks.each_ref().map(SpinLock::lock);
    assert!(locks.iter().all(SpinLock::is_held));
    drop(held);
    assert!(!locks.iter().any(SpinLock::is_held));
}
