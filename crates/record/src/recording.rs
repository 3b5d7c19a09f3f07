//! What comes of a recording, whichever backend made it.

use std::path::Path;

use trace::event::ExitStatus;
use trace::{Note, PoolInfo, ReadError, Summary, TraceReader};

use crate::recorder::Recorded;

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

impl Recording {
    /// For a backend that keeps no count of its own: from the trace that it wrote.
    pub fn from_trace(recorded: &Recorded, path: &Path) -> Result<Recording, ReadError> {
        let reader = TraceReader::open(path)?;
        let stat = trace::stat_of(&reader)?;
        let tables = reader.tables();
        let file_name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let activity = Activity {
            stores: stat.stores,
            nt_stores: stat.nt_stores,
            rmws: stat.rmws,
            flushes: stat.flushes - stat.volatile_flushes,
            fences: stat.fences,
            loads: stat.loads,
            kernel_writes: stat.kernel_writes + stat.file_writes,
            syncs: stat.syncs,
            maps: stat.pools,
            libpmem: tables.modules.iter().any(|module| is_libpmem(&file_name(&module.path))),
        };
        Ok(Recording {
            target: recorded.status,
            summary: recorded.summary,
            pools: tables.pools.iter().map(|pool| pool.info.clone()).collect(),
            activity,
            notes: tables.notes.clone(),
            interrupted: false,
        })
    }
}

/// Whether a file of this name is PMDK's libpmem.
pub(crate) fn is_libpmem(name: &str) -> bool {
    name.starts_with("libpmem.so") || name.starts_with("libpmem2.so")
}

/// How often the target did what; says at a glance whether it uses PM at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub stores: u64,
    /// Those of `stores` that bypass the cache.
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
        self.stores + self.rmws + self.flushes + self.loads + self.kernel_writes + self.syncs > 0
    }

    /// PMDK takes a pool on an ordinary file system for a plain file and calls `msync`, so that the recording
    /// holds no flush at all. The user surely meant the PM code path.
    pub fn pmdk_without_flushes(&self) -> bool {
        self.libpmem && self.flushes == 0 && self.nt_stores == 0 && self.maps > 0
    }
}
