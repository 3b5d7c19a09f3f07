//! The map examples of Debian's `libpmemobj-dev`: built from the package's own files, and a workload for them.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TargetError;
use crate::compile::compile;

/// The map kinds of `mapcli` that the project's figures are about.
pub const MAPS: [&str; 7] = ["btree", "rbtree", "ctree", "hashmap_tx", "hashmap_atomic", "skiplist", "rtree"];

/// Most operations that `rtree` can take: its nodes have 256 children, and the example's pool has 160 MB.
pub const RTREE_OPERATIONS: u32 = 50_000;

const EXAMPLES: &str = "/usr/share/doc/libpmemobj-dev/examples";
const DRIVER: &str = "map/mapcli.c";
const SOURCES: [&str; 17] = [
    "map/map.c",
    "map/map_btree.c",
    "map/map_ctree.c",
    "map/map_rtree.c",
    "map/map_rbtree.c",
    "map/map_skiplist.c",
    "map/map_hashmap_atomic.c",
    "map/map_hashmap_tx.c",
    "map/map_hashmap_rp.c",
    "tree_map/btree_map.c",
    "tree_map/ctree_map.c",
    "tree_map/rtree_map.c",
    "tree_map/rbtree_map.c",
    "list_map/skiplist_map.c",
    "hashmap/hashmap_atomic.c",
    "hashmap/hashmap_tx.c",
    "hashmap/hashmap_rp.c",
];

/// Builds `mapcli` into `folder`. Returns the executable.
pub fn build_mapcli(folder: &Path) -> Result<PathBuf, TargetError> {
    build(Command::new("cc"), &folder.join("mapcli"), &[])
}

/// The same, built for AFL++; it removes the pool that `FRESH_POOL` names before each run.
pub fn build_mapcli_for_afl(folder: &Path) -> Result<PathBuf, TargetError> {
    build(Command::new("afl-cc"), &folder.join("mapcli-afl"), &["fresh_pool.c"])
}

/// Which `mapcli` it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// As Debian has it.
    Debian,
    /// As it was when PMFuzz found its bugs 1 to 5: the map is made only when the pool is.
    MakesOnce,
    /// As it was for bug 6: it leaves out what `hashmap_atomic` needs after a crash.
    NeverRecovers,
}

impl Driver {
    /// Its name, and what differs from Debian's source: each text, and what stands there instead.
    fn changes(self) -> (&'static str, &'static [(&'static str, &'static str)]) {
        match self {
            Driver::Debian => ("mapcli", &[]),
            Driver::MakesOnce => (
                "mapcli-makes-once",
                &[
                    ("if (TOID_IS_NULL(map)) {", "if (made) {"),
                    ("root = POBJ_ROOT", "made = 1; root = POBJ_ROOT"),
                    ("const char *path = argv[2];", "const char *path = argv[2]; int made = 0;"),
                ],
            ),
            Driver::NeverRecovers => ("mapcli-never-recovers", &[("if (ops) {", "if (0) {")]),
        }
    }
}

/// Builds a `mapcli` with a bug that Debian's has no more.
pub fn build_driver(folder: &Path, driver: Driver) -> Result<PathBuf, TargetError> {
    let (name, changes) = driver.changes();
    let original = Path::new(EXAMPLES).join(DRIVER);
    if changes.is_empty() || !original.exists() {
        return build_mapcli(folder);
    }
    let mut text = fs::read_to_string(&original).map_err(TargetError::io(&original))?;
    for (from, to) in changes {
        if !text.contains(from) {
            let other = io::Error::new(io::ErrorKind::InvalidData, format!("another version: it has no `{from}`"));
            return Err(TargetError::io(&original)(other));
        }
        // Only the first: the pool is made before it is opened.
        text = text.replacen(from, to, 1);
    }
    let changed = folder.join(format!("{name}.c"));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&changed, text));
    written.map_err(TargetError::io(&changed))?;
    build_from(Command::new("cc"), &folder.join(name), &changed, &[])
}

fn build(command: Command, output: &Path, more: &[&str]) -> Result<PathBuf, TargetError> {
    build_from(command, output, &Path::new(EXAMPLES).join(DRIVER), more)
}

fn build_from(mut command: Command, output: &Path, driver: &Path, more: &[&str]) -> Result<PathBuf, TargetError> {
    let examples = Path::new(EXAMPLES);
    if !examples.join("map/mapcli.c").exists() {
        return Err(TargetError::NoPmdk { path: examples.to_owned() });
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("pmdk");
    command.args(["-O2", "-g", "-w", "-DNDEBUG", "-I"]).arg(&own);
    for include in ["", "map", "hashmap", "tree_map", "list_map"] {
        command.arg("-I").arg(examples.join(include));
    }
    let mut sources: Vec<PathBuf> = vec![driver.to_owned()];
    sources.extend(SOURCES.iter().map(|name| examples.join(name)));
    sources.extend(more.iter().map(|name| own.join(name)));
    command.args(&sources).args(["-lpmemobj", "-lpmem", "-pthread"]);
    sources.push(own.join("ex_common.h"));
    compile(command, output, &sources)?;
    Ok(output.to_owned())
}

/// What `mapcli` reads from its standard input: `operations` lines, two thirds insertions of scattered keys, then
/// removals and look-ups in turn. The same text every time.
pub fn workload(operations: u32) -> String {
    let mut text = String::new();
    let mut state = 1u64;
    let mut keys = Vec::new();
    for n in 0..operations {
        let written = match n % 6 {
            4 if n > 6 => writeln!(text, "r {}", keys[keys.len() / 2]),
            5 => writeln!(text, "c {}", keys[keys.len() / 3]),
            _ => {
                // Knuth's MMIX multiplier; the low 40 bits above the noisy ones are scattered and never 0.
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                keys.push((state >> 24) | 1);
                writeln!(text, "i {}", keys[keys.len() - 1])
            }
        };
        written.expect("a String takes any text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workload_has_as_many_lines_as_operations() {
        let text = workload(1000);
        assert_eq!(text.lines().count(), 1000);
        assert!(text.lines().filter(|line| line.starts_with("i ")).count() > 600);
        assert_eq!(text, workload(1000));
    }
}
