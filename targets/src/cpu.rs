//! Which instruction sets this machine has, by the kernel's names.

use std::collections::HashSet;
use std::fs;

/// The flags of `/proc/cpuinfo`.
#[derive(Clone, Debug)]
pub struct Cpu {
    flags: HashSet<String>,
}

impl Cpu {
    /// This machine. One whose `/proc/cpuinfo` cannot be read has no flags, so that programs are skipped, not broken.
    pub fn here() -> Cpu {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
        Cpu { flags: line.split_whitespace().map(str::to_owned).collect() }
    }

    /// The first of these flags that is missing.
    pub fn lacks<'f>(&self, needed: &'f [String]) -> Option<&'f str> {
        needed.iter().map(String::as_str).find(|flag| !self.flags.contains(*flag))
    }
}
