//! A recording as a list that can be compared with another: no ids and no addresses of the process, only names.

use std::path::Path;

use targets::Compare;
use trace::{CodeAddr, Event, EventKind, FileEvent, FlushTarget, PoolId, Tables, TraceReader};

/// One event in words that do not depend on who recorded it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComparedEvent {
    pub what: String,
    pub pc: String,
    /// Return addresses, outermost call first.
    pub path: Vec<String>,
    pub thread: Option<u32>,
    pub is_thread_boundary: bool,
}

/// Reads a trace whole.
pub fn load(path: &Path, compare: Compare) -> Result<Vec<ComparedEvent>, String> {
    let reader = TraceReader::open(path).map_err(|error| error.to_string())?;
    if !reader.is_complete() {
        return Err(format!("{} is not complete: {:?}", path.display(), reader.ending()));
    }
    let names = Names { tables: reader.tables(), lengths: compare.lengths };
    let mut events = reader.events();
    let mut all = Vec::new();
    while let Some(event) = events.next().map_err(|error| error.to_string())? {
        all.push(names.seen(&event, compare));
    }
    Ok(all)
}

#[derive(Debug)]
struct Names<'t> {
    tables: &'t Tables,
    lengths: bool,
}

impl Names<'_> {
    fn seen(&self, event: &Event<'_>, compare: Compare) -> ComparedEvent {
        let path = if compare.no_context { Vec::new() } else { self.path(event) };
        ComparedEvent {
            what: self.what(&event.kind),
            pc: self.code(event.pc),
            path,
            thread: (!compare.unordered).then_some(event.thread.0),
            is_thread_boundary: matches!(event.kind, EventKind::ThreadStart | EventKind::ThreadEnd),
        }
    }

    fn path(&self, event: &Event<'_>) -> Vec<String> {
        let mut frames: Vec<String> = self.tables.call_path(event.context).map(|addr| self.code(addr)).collect();
        frames.reverse();
        frames
    }

    fn code(&self, at: CodeAddr) -> String {
        format!("{}+{:#x}", self.tables.module(at.module).path, at.addr)
    }

    fn pool(&self, pool: PoolId) -> String {
        let path = &self.tables.pool(pool).info.path;
        path.rsplit('/').next().unwrap_or(path).to_owned()
    }

    /// A change of a file, with names instead of numbers.
    fn change(&self, change: &FileEvent<'_>) -> String {
        let paths: Vec<&str> = change.paths().map(|path| self.tables.path(path)).collect();
        let rest = match *change {
            FileEvent::Write { file, offset, bytes, continues } => {
                format!("{file:?} {offset:#x} {} {continues}", self.bytes(bytes))
            }
            FileEvent::Create { file, mode, .. } => format!("{file:?} {mode:o}"),
            FileEvent::Link { file, .. } => format!("{file:?}"),
            FileEvent::Mode { mode, .. } | FileEvent::MakeDirectory { mode, .. } => format!("{mode:o}"),
            FileEvent::SetXattr { name, value, .. } => format!("{name} {}", self.bytes(value)),
            FileEvent::RemoveXattr { name, .. } => name.to_owned(),
            FileEvent::Symlink { target, .. } => target.to_owned(),
            FileEvent::Zero { .. } | FileEvent::Length { .. } | FileEvent::Becomes { .. } | FileEvent::Sync { .. } => {
                format!("{change:?}")
            }
            FileEvent::Unlink { .. }
            | FileEvent::Rename { .. }
            | FileEvent::Exchange { .. }
            | FileEvent::RemoveDirectory { .. } => String::new(),
        };
        format!("file {} {paths:?} {rest}", change.name())
    }

    fn bytes(&self, bytes: &[u8]) -> String {
        if self.lengths {
            return format!("{} bytes", bytes.len());
        }
        let shown: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("[{}] {shown}", bytes.len())
    }

    /// The event without addresses of the process.
    fn what(&self, kind: &EventKind<'_>) -> String {
        let at = |place: &trace::Place| format!("{}:{:#x}", self.pool(place.pool), place.offset.0);
        match kind {
            EventKind::Store { place, kind, bytes } => format!("store {kind:?} {} {}", at(place), self.bytes(bytes)),
            EventKind::Rmw { place, old, new } => {
                format!("rmw {} {} -> {}", at(place), self.bytes(old), self.bytes(new))
            }
            EventKind::Flush { kind, target: FlushTarget::Pool(place) } => format!("flush {kind:?} {}", at(place)),
            EventKind::Flush { kind, target: FlushTarget::Volatile(_) } => format!("flush {kind:?} of ordinary memory"),
            EventKind::Map { place, len, .. } => format!("map {} {len:#x}", at(place)),
            EventKind::Unmap { place, len, .. } => format!("unmap {} {len:#x}", at(place)),
            EventKind::Msync { place, len } => format!("msync {} {len:#x}", at(place)),
            EventKind::Fsync { pool, data_only } => format!("fsync {} data_only={data_only}", self.pool(*pool)),
            EventKind::KernelWrite { place, bytes } => format!("kernel write {} {}", at(place), self.bytes(bytes)),
            EventKind::FileWrite { place, bytes } => format!("file write {} {}", at(place), self.bytes(bytes)),
            EventKind::FileZero { place, len } => format!("file zero {} {len:#x}", at(place)),
            EventKind::Resize { pool, len } => format!("resize {} {len:#x}", self.pool(*pool)),
            EventKind::Load { place, len } => format!("load {} {len:#x}", at(place)),
            EventKind::Call { watch, args } if !self.lengths => {
                format!("call {} {args:x?}", self.tables.watch(*watch))
            }
            EventKind::Return { watch, value } if !self.lengths => {
                format!("return {} {value:#x}", self.tables.watch(*watch))
            }
            EventKind::Call { watch, .. } => format!("call {}", self.tables.watch(*watch)),
            EventKind::Return { watch, .. } => format!("return {}", self.tables.watch(*watch)),
            EventKind::File(change) => self.change(change),
            EventKind::Fence { .. }
            | EventKind::ThreadStart
            | EventKind::ThreadEnd
            | EventKind::ProcessStart { .. }
            | EventKind::ProcessExit { .. }
            | EventKind::Exec { .. }
            | EventKind::OperationBegin { .. }
            | EventKind::OperationEnd { .. } => format!("{kind:?}"),
        }
    }
}
