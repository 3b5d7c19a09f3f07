//! What PMDK's libraries that manage pools keep there for themselves: run-time state of the pool, run numbers of locks, descriptors of free
//! blocks, footers of chunks, generation numbers of logs that are never read after a crash. They store it and do not flush it, on
//! purpose; in its source each such place is taken out of pmemcheck's sight (`VALGRIND_SET_CLEAN`, `VALGRIND_REMOVE_PMEM_MAPPING`).
//! docs/lint-pmdk.md has those that were looked at.
//!
//! Only stores of the library's own instructions are meant, and those that it has the C library make (`memset`, locks). What a program has copied
//! by `pmem_memcpy_nodrain` or `pmemobj_memcpy` is stored by libpmem, and is the program's data.

use finding::finding::Location;
use finding::pmdk::Library;

/// Whether such a library made the store. Frames are innermost first.
pub fn own_store(frames: &[Location]) -> bool {
    let asked = frames.iter().find(|frame| !frame.module.starts_with("libc.so"));
    asked.and_then(|frame| Library::of(&frame.module)).is_some_and(Library::keeps_pools)
}

#[cfg(test)]
mod tests {
    use finding::finding::Role;

    use super::*;

    fn frame(module: &str) -> Location {
        let (file, line, function) = (None, None, None);
        Location { role: Role::Store, file, line, function, module: module.to_owned(), address: 0 }
    }

    #[test]
    fn who_asked_the_c_library_counts() {
        assert!(own_store(&[frame("libc.so.6"), frame("libpmemobj.so.1"), frame("app")]));
        assert!(!own_store(&[frame("libc.so.6"), frame("app"), frame("libpmemobj.so.1")]));
    }

    #[test]
    fn only_the_innermost_frame_counts() {
        assert!(own_store(&[frame("/usr/lib/libpmemobj.so.1.0.0"), frame("app")]));
        assert!(!own_store(&[frame("libpmem.so.1.0.0"), frame("libpmemobj.so.1.0.0"), frame("app")]));
        assert!(!own_store(&[frame("app"), frame("libpmemobj.so.1.0.0")]));
        assert!(!own_store(&[]));
    }
}
