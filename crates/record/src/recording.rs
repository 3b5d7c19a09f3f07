//! What comes of a recording, whichever backend made it.

use trace::event::ExitStatus;
use trace::{Note, PoolInfo, Summary};

/// A finished recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// How the target's first process ended.
    pub target: ExitStatus,
    pub summary: Summary,
    /// The pools, as they were when they became pools.
    pub pools: Vec<PoolInfo>,
    pub activity: Activity,
    /// What the recorder wants the user to know.
    pub notes: Vec<Note>,
    /// The user ended the recording before the target ended by itself.
    pub interrupted: bool,
}

/// How often the target did what; says at a glance whether it uses PM at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub stores: u64,
    /// Non-temporal ones; not in `stores`.
    pub nt_stores: u64,
    pub rmws: u64,
    /// Of lines of pools.
    pub flushes: u64,
    pub fences: u64,
    pub loads: u64,
    /// Writes by the kernel into mapped pools or to their files.
    pub kernel_writes: u64,
    pub syncs: u64,
    /// Mappings of pools.
    pub maps: u64,
    /// The target has loaded PMDK's libpmem.
    pub libpmem: bool,
}

impl Activity {
    /// Whether anything was done to persistent memory.
    pub fn any(&self) -> bool {
        self.stores + self.nt_stores + self.rmws + self.flushes + self.loads + self.kernel_writes + self.syncs > 0
    }

    /// PMDK takes a pool on an ordinary file system for a plain file and calls `msync`, so that the recording
    /// holds no flush at all. The user surely meant the PM code path.
    pub fn pmdk_without_flushes(&self) -> bool {
        self.libpmem && self.flushes == 0 && self.nt_stores == 0 && self.maps > 0
    }
}
