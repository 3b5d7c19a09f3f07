//! What a probe shall do with its program.

use std::path::PathBuf;

/// A pool, and the private file that the program finds in its place.
#[derive(Clone, Debug)]
pub struct Substituted {
    /// Absolute, without symbolic links.
    pub path: PathBuf,
    pub private: PathBuf,
}

/// What to record, and what to let through.
#[derive(Clone, Debug, Default)]
pub struct ProbeOptions {
    /// Paths of pools; empty: every writable shared mapping of a regular file or DAX device.
    pub pools: Vec<String>,
    /// Functions whose calls are recorded.
    pub watch: Vec<String>,
    pub loads: bool,
    /// Log executed blocks and addresses. Not together with `loads`.
    pub flow: bool,
    /// With `flow`: operands as well, and where the input goes; device and inode of the input file, 0 for none.
    pub input: Option<(u64, u64)>,
    pub real_time: bool,
    pub real_random: bool,
    pub real_tsc: bool,
    /// Serve standard input line by line and mark operation boundaries.
    pub operations_stdin: bool,
    pub substitutes: Vec<Substituted>,
    /// Tell what happens to files that are no pools, and to names.
    pub files: bool,
    /// The descriptors that become the target's standard streams; none: our own.
    pub streams: Option<[i32; 3]>,
    /// Size of the code caches; 0: the probe's default.
    pub cache_bytes: u64,
}
