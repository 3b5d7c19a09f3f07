//! Counting what a trace holds, from the directories of its blocks alone.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::ReadError;
use crate::event::{ContextId, ThreadId};
use crate::reader::TraceReader;
use crate::shape::Code;

/// Numbers about a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    pub events: u64,
    /// Store events of every kind, without read-modify-writes.
    pub stores: u64,
    /// Those of `stores` that bypass the cache.
    pub nt_stores: u64,
    pub rmws: u64,
    pub flushes: u64,
    /// Those of `flushes` that are of ordinary memory.
    pub volatile_flushes: u64,
    /// Without those that read-modify-writes are.
    pub fences: u64,
    pub loads: u64,
    /// `msync`, `fsync`, `fdatasync`.
    pub syncs: u64,
    pub kernel_writes: u64,
    /// Writes, zeroing and changes of length of a pool's file.
    pub file_writes: u64,
    /// Changes of files that are no pools, and of names.
    pub file_changes: u64,
    pub calls: u64,
    pub processes: u64,
    pub threads: u64,
    /// Distinct call paths of events.
    pub contexts: u64,
    /// Operations that began.
    pub operations: u64,
    pub pools: u64,
    pub instructions_seen: Vec<String>,
    /// Size of the trace file.
    pub bytes: u64,
    pub complete: bool,
}

impl Stat {
    fn add(&mut self, code: Code, events: u64) {
        self.events += events;
        match code {
            Code::Store => self.stores += events,
            Code::StoreNonTemporal | Code::StoreDirect64 => {
                self.stores += events;
                self.nt_stores += events;
            }
            Code::Rmw => self.rmws += events,
            Code::Clflush | Code::Clflushopt | Code::Clwb | Code::Cldemote => self.flushes += events,
            Code::VolatileClflush | Code::VolatileClflushopt | Code::VolatileClwb | Code::VolatileCldemote => {
                self.flushes += events;
                self.volatile_flushes += events;
            }
            Code::Sfence | Code::Mfence | Code::Locked => self.fences += events,
            Code::Load => self.loads += events,
            Code::Msync | Code::Fsync | Code::Fdatasync => self.syncs += events,
            Code::KernelWrite => self.kernel_writes += events,
            Code::FileWrite | Code::FileZero | Code::Resize => self.file_writes += events,
            Code::File => self.file_changes += events,
            Code::ProcessStart => self.processes += events,
            Code::OperationBegin => self.operations += events,
            Code::Call => self.calls += events,
            Code::Map | Code::Unmap | Code::ThreadStart | Code::ThreadEnd => {}
            Code::Exited | Code::Killed | Code::Exec | Code::OperationEnd | Code::Return => {}
        }
    }
}

/// Counts the events of a trace; of a cut one, those that can be read.
pub fn stat(path: &Path) -> Result<Stat, ReadError> {
    stat_of(&TraceReader::open(path)?)
}

/// As [`stat`], for a trace that is open.
pub fn stat_of(reader: &TraceReader) -> Result<Stat, ReadError> {
    reader.undamaged()?;
    let tables = reader.tables();
    let mut stat = Stat {
        pools: tables.pools.len() as u64,
        instructions_seen: tables.instructions_seen.clone(),
        bytes: reader.file_len(),
        complete: reader.is_complete(),
        ..Stat::default()
    };
    let mut threads: BTreeSet<ThreadId> = BTreeSet::new();
    let mut contexts: BTreeSet<ContextId> = BTreeSet::new();
    for block in &reader.blocks {
        let directory = reader.directory(block)?;
        threads.extend(&directory.threads);
        for (number, events) in directory.shapes {
            let shape = &reader.shapes[number as usize];
            contexts.insert(shape.context);
            stat.add(shape.code, events.into());
        }
    }
    stat.threads = threads.len() as u64;
    stat.contexts = contexts.len() as u64;
    Ok(stat)
}
