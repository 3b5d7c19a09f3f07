//! A bug in a program that others wrote, as docs/found.md tells it: libpmem2's own example of a redo log, which flushes the address of a pointer instead
//! of the log.

use std::path::Path;
use std::process::Command;

/// Debian's `libpmem2-dev`, which `./test` installs.
const REDO: &str = "/usr/share/doc/libpmem2-dev/examples/redo/redo.c";

#[test]
fn the_redo_log_of_libpmem2() {
    assert!(Path::new(REDO).exists(), "install libpmem2-dev: {REDO} is not there");
    let folder = tempfile::tempdir().expect("temporary directory");
    let shell = |commands: &str| {
        let mut bash = Command::new("bash");
        bash.args(["-c", commands]).current_dir(folder.path()).env("FENCEPOST", env!("CARGO_BIN_EXE_fencepost"));
        bash.env("REDO", REDO).env_remove("PMEM_IS_PMEM_FORCE").env_remove("PMEM2_FORCE_GRANULARITY");
        bash.output().expect("bash starts")
    };
    let built = shell("cc -O1 -g $REDO -lpmem2 -o redo && truncate -s 1M pool");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let checked = shell(
        "timeout --kill-after=5 300 $FENCEPOST check --timeout 1s --recover './redo check pool' -- ./redo add pool 1 10 2 20",
    );
    let found = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(checked.status.code(), Some(1), "{found}{}", String::from_utf8_lossy(&checked.stderr));
    // One cause, and the place where the wrong thing is flushed.
    assert_eq!(found.matches("error[").count(), 1, "{found}");
    assert!(
        found.contains("error[FP0601]: the store to `entry->data` in `redo_add` (redo.c:103) is never made durable"),
        "{found}"
    );
    assert!(found.contains("before `redo_commit` (redo.c:121)"), "{found}");
    let wrong = found.split("performance[FP0202]").nth(1).unwrap_or_default();
    assert!(wrong.contains("redo.c:118:2"), "{found}");
}
