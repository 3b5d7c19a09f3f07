//! A trace as text: one line per event, for people and for `diff`.

use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use crate::cursor::Events;
use crate::error::ReadError;
use crate::event::*;
use crate::reader::TraceReader;
use crate::symbol::{SourceFrame, Symbolizer};
use crate::tables::{ModuleKind, Pool, Tables};

/// What to show, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpOptions {
    pub which: Which,
    /// Name functions and source lines.
    pub symbols: bool,
    /// Show the call path of each event below it.
    pub call_paths: bool,
}

/// Which events to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Which {
    #[default]
    All,
    Range(Range<EventId>),
    Thread(ThreadId),
    Context(ContextId),
    Operation(u64),
}

#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("cannot write the dump: {0}")]
    Write(#[from] io::Error),
    #[error("the trace has no operation {0}")]
    NoOperation(u64),
}

/// Writes the events of a trace to `out`, each as
/// `number thread kind place length bytes code-address context`.
pub fn dump(path: &Path, options: &DumpOptions, out: &mut dyn Write) -> Result<(), DumpError> {
    let reader = TraceReader::open(path)?;
    let mut events = select(&reader, &options.which)?;
    let tables = reader.tables();
    let names = PoolNames::new(tables);
    let mut symbols = options.symbols.then(|| Symbolizer::new(tables));
    let out = &mut io::BufWriter::new(out);
    while let Some((id, event)) = events.next_with_id()? {
        write!(out, "{} t{} ", id.0, event.thread.0)?;
        write_kind(&event.kind, tables, &names, out)?;
        write!(out, "  ")?;
        // The innermost call is needed even where no call path is shown: it can name the function.
        let (calls, shown) = if options.call_paths { (usize::MAX, usize::MAX) } else { (1, 1) };
        let calls = tables.call_path(event.context).take(calls);
        let path = match &mut symbols {
            Some(symbols) => symbols.path_frames(event.pc, calls),
            None => std::iter::once(event.pc).chain(calls).map(|at| (at, Rc::default())).collect(),
        };
        for (number, (at, frames)) in path.iter().take(shown).enumerate() {
            if number > 0 {
                write!(out, "    from ")?;
            }
            write_code(*at, frames, tables, out)?;
            if number == 0 {
                write!(out, "  c{}", event.context.0)?;
            }
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn select<'r>(reader: &'r TraceReader, which: &Which) -> Result<Events<'r>, DumpError> {
    Ok(match which {
        Which::All => reader.events(),
        Which::Range(range) => reader.events_in(range.clone()),
        Which::Thread(thread) => reader.events_of_thread(*thread),
        Which::Context(context) => reader.events_of_context(*context),
        Which::Operation(index) => reader.events_in(reader.operation(*index)?.ok_or(DumpError::NoOperation(*index))?),
    })
}

fn write_kind(kind: &EventKind<'_>, tables: &Tables, names: &PoolNames, out: &mut dyn Write) -> io::Result<()> {
    let at = |place: Place| At(names.of(place.pool), place.offset);
    match *kind {
        EventKind::Store { place, kind, bytes } => {
            let name = match kind {
                StoreKind::Plain => "store",
                StoreKind::NonTemporal => "nt-store",
                StoreKind::Direct64 => "direct-store",
            };
            write!(out, "{name} {} {} {}", at(place), bytes.len(), Hex(bytes))
        }
        EventKind::Rmw { place, old, new } => {
            write!(out, "rmw {} {} {} -> {}", at(place), new.len(), Hex(old), Hex(new))
        }
        EventKind::Flush { kind, target } => {
            let name = match kind {
                FlushKind::Clflush => "clflush",
                FlushKind::Clflushopt => "clflushopt",
                FlushKind::Clwb => "clwb",
                FlushKind::Cldemote => "cldemote",
            };
            match target {
                FlushTarget::Pool(place) => write!(out, "{name} {}", at(place)),
                FlushTarget::Volatile(address) => write!(out, "{name} volatile {address:#x}"),
            }
        }
        EventKind::Fence { kind: FenceKind::Sfence } => write!(out, "sfence"),
        EventKind::Fence { kind: FenceKind::Mfence } => write!(out, "mfence"),
        EventKind::Fence { kind: FenceKind::Locked } => write!(out, "locked-fence"),
        EventKind::Load { place, len } => write!(out, "load {} {len}", at(place)),
        EventKind::Map { place, len, address } => write!(out, "map {} {len} at {address:#x}", at(place)),
        EventKind::Unmap { place, len, address } => write!(out, "unmap {} {len} at {address:#x}", at(place)),
        EventKind::Msync { place, len } => write!(out, "msync {} {len}", at(place)),
        EventKind::Fsync { pool, data_only } => {
            write!(out, "{} {}", if data_only { "fdatasync" } else { "fsync" }, names.of(pool))
        }
        EventKind::KernelWrite { place, bytes } => {
            write!(out, "kernel-write {} {} {}", at(place), bytes.len(), Hex(bytes))
        }
        EventKind::FileWrite { place, bytes } => {
            write!(out, "file-write {} {} {}", at(place), bytes.len(), Hex(bytes))
        }
        EventKind::FileZero { place, len } => write!(out, "file-zero {} {len}", at(place)),
        EventKind::Resize { pool, len } => write!(out, "resize {} {len}", names.of(pool)),
        EventKind::File(ref change) => write_change(change, tables, names, out),
        EventKind::ThreadStart => write!(out, "thread-start"),
        EventKind::ThreadEnd => write!(out, "thread-end"),
        EventKind::ProcessStart { process, parent: None } => write!(out, "process-start p{}", process.0),
        EventKind::ProcessStart { process, parent: Some(parent) } => {
            write!(out, "process-start p{} from p{}", process.0, parent.0)
        }
        EventKind::ProcessExit { status: ExitStatus::Code(code) } => write!(out, "process-exit code {code}"),
        EventKind::ProcessExit { status: ExitStatus::Signal(signal) } => write!(out, "process-exit signal {signal}"),
        EventKind::Exec { path } => write!(out, "exec {path:?}"),
        EventKind::OperationBegin { index } => write!(out, "operation-begin {index}"),
        EventKind::OperationEnd { index } => write!(out, "operation-end {index}"),
        EventKind::Call { watch, args } => {
            let args: Vec<String> = args.iter().map(|arg| format!("{arg:#x}")).collect();
            write!(out, "call {}({})", tables.watch(watch), args.join(", "))
        }
        EventKind::Return { watch, value } => write!(out, "return {} = {value:#x}", tables.watch(watch)),
    }
}

fn write_change(change: &FileEvent<'_>, tables: &Tables, names: &PoolNames, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "file-{}", change.name())?;
    match *change {
        FileEvent::Create { file, path, mode } => write!(out, " f{} {:?} {mode:o}", file.0, tables.path(path)),
        FileEvent::Write { file, offset, bytes, .. } => {
            write!(out, " f{}+{offset:#x} {} {}", file.0, bytes.len(), Hex(bytes))
        }
        FileEvent::Zero { file, offset, len } => write!(out, " f{}+{offset:#x} {len}", file.0),
        FileEvent::Length { file, len } => write!(out, " f{} {len}", file.0),
        FileEvent::Becomes { file, pool } => write!(out, " f{} {}", file.0, names.of(pool)),
        FileEvent::Mode { path, mode } | FileEvent::MakeDirectory { path, mode } => {
            write!(out, " {:?} {mode:o}", tables.path(path))
        }
        FileEvent::SetXattr { path, name, value } => {
            write!(out, " {:?} {name} {} {}", tables.path(path), value.len(), Hex(value))
        }
        FileEvent::RemoveXattr { path, name } => write!(out, " {:?} {name}", tables.path(path)),
        FileEvent::Link { file, path } => write!(out, " f{} {:?}", file.0, tables.path(path)),
        FileEvent::Unlink { path } | FileEvent::RemoveDirectory { path } => write!(out, " {:?}", tables.path(path)),
        FileEvent::Rename { from, to } | FileEvent::Exchange { from, to } => {
            write!(out, " {:?} {:?}", tables.path(from), tables.path(to))
        }
        FileEvent::Symlink { path, target } => write!(out, " {:?} {target:?}", tables.path(path)),
        FileEvent::Sync { file: Some(file), .. } => write!(out, " f{}", file.0),
        FileEvent::Sync { file: None, .. } => write!(out, " everything"),
    }
}

/// The file names of pools; with their number where several have the same.
struct PoolNames(Vec<String>);

impl PoolNames {
    fn new(tables: &Tables) -> PoolNames {
        let name = |pool: &Pool| pool.info.path.rsplit('/').next().unwrap_or_default().to_owned();
        let names: Vec<String> = tables.pools.iter().map(name).collect();
        let numbered = names.iter().enumerate().map(|(number, own)| {
            let same = names.iter().filter(|other| *other == own).count();
            if same > 1 { format!("{own}#{number}") } else { own.clone() }
        });
        PoolNames(numbered.collect())
    }

    fn of(&self, pool: PoolId) -> &str {
        self.0.get(pool.0 as usize).map(String::as_str).unwrap_or_default()
    }
}

struct At<'a>(&'a str, PoolOffset);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", self.0, self.1.0)
    }
}

fn write_code(addr: CodeAddr, frames: &[SourceFrame], tables: &Tables, out: &mut dyn Write) -> io::Result<()> {
    let module = tables.module(addr.module);
    if module.kind == ModuleKind::None {
        return write!(out, "-");
    }
    write!(out, "{}+{:#x}", module.path.rsplit('/').next().unwrap_or_default(), addr.addr)?;
    for (number, frame) in frames.iter().enumerate() {
        let name = frame.function.as_deref().unwrap_or("?");
        write!(out, "{}{name}", if number == 0 { " " } else { " in " })?;
        if let Some(source) = &frame.source {
            write!(out, " {}:{}", source.file, source.line)?;
        }
    }
    Ok(())
}

/// Bytes in memory order.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
