//! PMDK's libraries, by the names of their files.

use crate::blame::file_name;
use crate::finding::{Location, Role};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Pmem,
    Pmem2,
    Pmemobj,
    Pmemlog,
    Pmemblk,
    Pmempool,
}

/// How the names of the files begin; versions follow.
const FILES: [(Library, &str); 6] = [
    (Library::Pmem, "libpmem.so"),
    (Library::Pmem2, "libpmem2.so"),
    (Library::Pmemobj, "libpmemobj.so"),
    (Library::Pmemlog, "libpmemlog.so"),
    (Library::Pmemblk, "libpmemblk.so"),
    (Library::Pmempool, "libpmempool.so"),
];

impl Library {
    /// The library whose file this is.
    pub fn of(path: &str) -> Option<Library> {
        let name = file_name(path);
        FILES.iter().find(|(_, file)| name.starts_with(file)).map(|(library, _)| *library)
    }

    /// libpmem and libpmem2 store and flush what others ask them to, and decide how; the others keep pools, with data of their own.
    pub fn keeps_pools(self) -> bool {
        !matches!(self, Library::Pmem | Library::Pmem2)
    }
}

/// What libpmemobj flushes and fences in these is what its caller asked for.
const ON_REQUEST: [&str; 7] =
    ["pmemobj_persist", "pmemobj_flush", "pmemobj_drain", "pmemobj_mem", "pmemobj_xpersist", "pmemobj_xflush", "pmem_"];
/// What they flush is what was added to the transaction; how they fence is their own affair.
const COMMITS: [&str; 3] = ["pmemobj_tx_commit", "pmemobj_tx_process", "pmemobj_tx_end"];

/// Whether a library that keeps pools did this for itself: it was the one that the program called, with something else than to make data
/// durable. `frames` are those before the guilty one, innermost first.
pub fn on_own_account(frames: &[Location]) -> bool {
    let called = frames.iter().rev().find(|frame| Library::of(&frame.module).is_some());
    let Some((called, name)) = called.and_then(|frame| Some((frame, frame.function.as_deref()?))) else { return false };
    let is_of_failure = called.role.is_of_failing_store();
    // A call is the program's own.
    if !matches!(called.role, Role::Flush | Role::Fence | Role::Store) && !is_of_failure {
        return false;
    }
    let flushes_ranges = called.role != Role::Fence && !is_of_failure && COMMITS.contains(&name);
    Library::of(&called.module).is_some_and(Library::keeps_pools)
        && !ON_REQUEST.iter().any(|prefix| name.starts_with(prefix))
        && !flushes_ranges
}

/// Whether this is a file of PMDK, or of a library that is named like its own because it is built on them (libpmemkv).
pub fn is_named_like(path: &str) -> bool {
    let name = file_name(path);
    name.starts_with("libpmem") && name.contains(".so")
}

/// Patterns over the file names of all of PMDK's libraries.
pub(crate) fn patterns() -> impl Iterator<Item = String> {
    FILES.iter().map(|(_, file)| format!("{file}*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_not_part_of_the_name() {
        assert_eq!(Library::of("/usr/lib/libpmem.so.1.0.0"), Some(Library::Pmem));
        assert_eq!(Library::of("libpmem2.so.1"), Some(Library::Pmem2));
        assert_eq!(Library::of("libpmemobj.so.1"), Some(Library::Pmemobj));
        assert_eq!(Library::of("libpmemkv.so.1"), None);
        assert!(is_named_like("/opt/libpmemkv.so.1") && !is_named_like("/opt/libpmem/libpmem_test"));
    }
}
