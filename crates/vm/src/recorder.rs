//! Turns the plugin's records into a trace.
//!
//! Differences from a recorded program (rules of [`trace::event`]): a thread is a kernel stack (so that interrupts and other tasks of the guest
//! are distinguished from the system call), locked instructions are not fences (rules 4 and 5: in the kernel they are everywhere and would hide missing
//! fences), a fence is one of every thread that has flushed or stored non-temporally before it (they share one processor: ext4 flushes in the system
//! call, and its journal's thread fences), flushes of ordinary memory are not recorded, and call paths are exact from the start of the recording.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use trace::event::{
    CodeAddr, ContextId, Event, EventKind, ExitStatus, FenceKind, FlushKind, FlushTarget, ModuleId, Place, PoolId,
    PoolOffset, ProcessId, StoreKind, ThreadId,
};
use trace::{CodeModule, Meta, ModuleKind, Outcome, PoolInfo, TraceWriter, WriteError};
use wire::guest::{CLFLUSH, CLFLUSHOPT, GuestRecordKind, MAX_FRAMES, MFENCE, Mark, NON_TEMPORAL, PM_BASE, STRING};

use crate::ring::Record;
use crate::symbols::Symbols;

/// Where the kernel maps the PM region.
const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;
/// Rule 2: longer stores are cut at these places.
const CUT: u64 = 4096;
const POOL: PoolId = PoolId(0);
const AGENT: ThreadId = ThreadId(0);

/// What becomes a trace.
#[derive(Debug)]
pub struct Recorded<'a> {
    pub command: Vec<String>,
    /// The file that stands for the PM region.
    pub pool: &'a Path,
    pub initial: &'a [u8],
    pub last: &'a [u8],
    pub records: &'a [Record],
    pub symbols: &'a Symbols,
    /// Files with the names of kernel functions.
    pub symbol_files: &'a BTreeMap<String, PathBuf>,
}

impl Recorded<'_> {
    pub fn write(&self, path: &Path) -> Result<(), WriteError> {
        let meta = Meta {
            command: self.command.clone(),
            cwd: String::new(),
            recorder: "vm".into(),
            options: vec!["--strict-fences".into()],
        };
        let mut writer = TraceWriter::create(path, meta)?;
        let info = PoolInfo { path: self.pool.display().to_string(), len: self.initial.len() as u64 };
        writer.pool(info, &mut &*self.initial)?;
        let mut translation = Translation {
            recorded: self,
            writer,
            threads: FxHashMap::default(),
            modules: FxHashMap::default(),
            held: None,
            unfenced: BTreeSet::new(),
        };
        translation.all()?;
        let Translation { writer, .. } = translation;
        let outcome = Outcome::Ended(ExitStatus::Code(0));
        writer.finish(&mut [(POOL, &mut &*self.last)], outcome)?;
        Ok(())
    }
}

/// Stores of one string instruction that lie side by side.
struct Held {
    thread: ThreadId,
    context: ContextId,
    pc: CodeAddr,
    from: u64,
    bytes: Vec<u8>,
}

struct Translation<'a> {
    recorded: &'a Recorded<'a>,
    writer: TraceWriter,
    threads: FxHashMap<u64, ThreadId>,
    modules: FxHashMap<String, ModuleId>,
    held: Option<Held>,
    /// What these have flushed or stored non-temporally waits for a fence.
    unfenced: BTreeSet<ThreadId>,
}

impl Translation<'_> {
    fn all(&mut self) -> Result<(), WriteError> {
        let start = EventKind::ProcessStart { process: ProcessId(0), parent: None };
        self.bare(AGENT, start)?;
        let place = Place { pool: POOL, offset: PoolOffset(0) };
        let len = self.recorded.initial.len() as u64;
        self.bare(AGENT, EventKind::Map { place, len, address: DIRECT_MAP + PM_BASE })?;
        for record in self.recorded.records {
            self.record(record)?;
        }
        self.release()?;
        self.bare(AGENT, EventKind::ProcessExit { status: ExitStatus::Code(0) })
    }

    fn bare(&mut self, thread: ThreadId, kind: EventKind<'_>) -> Result<(), WriteError> {
        let event = Event { thread, context: ContextId(0), pc: CodeAddr::default(), kind };
        self.writer.push(&event).map(drop)
    }

    fn record(&mut self, record: &Record) -> Result<(), WriteError> {
        let place = |offset| Place { pool: POOL, offset: PoolOffset(offset) };
        let kind = match record.kind {
            GuestRecordKind::Mark => return self.mark(record.subject()),
            // Not of a recording.
            GuestRecordKind::ReadLine | GuestRecordKind::WroteLine | GuestRecordKind::Edge => return Ok(()),
            GuestRecordKind::Store if record.detail == STRING => return self.string(record),
            GuestRecordKind::Store => None,
            GuestRecordKind::Flush => Some(EventKind::Flush {
                kind: match record.detail {
                    CLFLUSH => FlushKind::Clflush,
                    CLFLUSHOPT => FlushKind::Clflushopt,
                    _ => FlushKind::Clwb,
                },
                target: FlushTarget::Pool(place(record.subject())),
            }),
            GuestRecordKind::Fence => Some(EventKind::Fence {
                kind: if record.detail == MFENCE { FenceKind::Mfence } else { FenceKind::Sfence },
            }),
        };
        self.release()?;
        let (thread, context, pc) = self.origin(record)?;
        let bytes = record.value();
        let kind = kind.unwrap_or_else(|| EventKind::Store {
            place: place(record.subject()),
            kind: if record.detail == NON_TEMPORAL { StoreKind::NonTemporal } else { StoreKind::Plain },
            bytes: &bytes,
        });
        let mut event = Event { thread, context, pc, kind };
        self.writer.push(&event)?;
        match event.kind {
            EventKind::Flush { .. } | EventKind::Store { kind: StoreKind::NonTemporal, .. } => {
                self.unfenced.insert(thread);
            }
            EventKind::Fence { .. } => {
                for other in std::mem::take(&mut self.unfenced).into_iter().filter(|&other| other != thread) {
                    event.thread = other;
                    self.writer.push(&event)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn mark(&mut self, word: u64) -> Result<(), WriteError> {
        self.release()?;
        match Mark::of(word) {
            Some((Mark::OperationBegin, index)) => self.bare(AGENT, EventKind::OperationBegin { index }),
            Some((Mark::OperationEnd, index)) => self.bare(AGENT, EventKind::OperationEnd { index }),
            _ => Ok(()),
        }
    }

    /// QEMU executes string instructions piece by piece; they are one store up to the next cut.
    fn string(&mut self, record: &Record) -> Result<(), WriteError> {
        let (thread, context, pc) = self.origin(record)?;
        let (from, bytes) = (record.subject(), record.value());
        if let Some(held) = &mut self.held {
            let goes_on = (held.thread, held.context, held.pc) == (thread, context, pc)
                && held.from + held.bytes.len() as u64 == from
                && from / CUT == held.from / CUT;
            if goes_on {
                held.bytes.extend_from_slice(&bytes);
                return Ok(());
            }
        }
        self.release()?;
        self.held = Some(Held { thread, context, pc, from, bytes });
        Ok(())
    }

    fn release(&mut self) -> Result<(), WriteError> {
        let Some(Held { thread, context, pc, from, bytes }) = self.held.take() else { return Ok(()) };
        let place = Place { pool: POOL, offset: PoolOffset(from) };
        let kind = EventKind::Store { place, kind: StoreKind::Plain, bytes: &bytes };
        self.writer.push(&Event { thread, context, pc, kind }).map(drop)
    }

    fn origin(&mut self, record: &Record) -> Result<(ThreadId, ContextId, CodeAddr), WriteError> {
        let next = ThreadId(self.threads.len() as u32 + 1);
        let thread = match self.threads.get(&record.stack()) {
            Some(known) => *known,
            None => {
                self.threads.insert(record.stack(), next);
                self.bare(next, EventKind::ThreadStart)?;
                next
            }
        };
        let cut = record.frames().len() >= MAX_FRAMES;
        let mut context = ContextId(0);
        for (number, &address) in record.frames().iter().rev().enumerate() {
            let return_to = self.code(address);
            context = self.writer.context(context, return_to, cut && number == 0);
        }
        Ok((thread, context, self.code(record.instruction())))
    }

    fn code(&mut self, addr: u64) -> CodeAddr {
        let name = self.recorded.symbols.file_of(addr).unwrap_or_default();
        if let Some(&module) = self.modules.get(name) {
            return CodeAddr { module, addr };
        }
        let module = match self.recorded.symbol_files.get(name) {
            Some(path) => CodeModule { path: path.display().to_string(), build_id: None, kind: ModuleKind::Elf },
            // The agent itself, which stores into mapped files.
            None => CodeModule { path: "agent".into(), build_id: None, kind: ModuleKind::Anonymous },
        };
        let module = self.writer.module(module);
        self.modules.insert(name.to_owned(), module);
        CodeAddr { module, addr }
    }
}

#[cfg(test)]
mod tests {
    use trace::{TraceReader, verify};
    use wire::guest::head;

    use super::*;

    fn store(detail: u8, offset: u64, byte: u8) -> Record {
        let words = [offset, 0xffff_ffff_8100_0000, 0xffff_c900_0000_4000, byte.into(), 0xffff_ffff_8100_0105];
        Record::parse(head(GuestRecordKind::Store, detail, 1, 1, 5), &words).unwrap()
    }

    /// What a thread flushed is durable after the fence of another: the guest has one processor.
    #[test]
    fn a_fence_is_of_all_threads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.fptrace");
        let symbols = Symbols::parse("ffffffff81000000 T work\n");
        let on_stack = |kind, detail, stack: u64, value: &[u64]| {
            let words = [&[0, 0xffff_ffff_8100_0000, stack], value].concat();
            Record::parse(head(kind, detail, if value.is_empty() { 0 } else { 8 }, 0, words.len() as u8), &words)
                .unwrap()
        };
        let (one, two, three) = (0xffff_c900_0000_4000, 0xffff_c900_0000_8000, 0xffff_c900_0000_c000);
        let records = [
            on_stack(GuestRecordKind::Store, 0, one, &[7]),
            on_stack(GuestRecordKind::Flush, 0, one, &[]),
            on_stack(GuestRecordKind::Store, 0, three, &[7]),
            on_stack(GuestRecordKind::Fence, 0, two, &[]),
            on_stack(GuestRecordKind::Fence, 0, two, &[]),
        ];
        let mut last = vec![0; 4096];
        last[0] = 7;
        let recorded = Recorded {
            command: vec!["guest".into()],
            pool: Path::new("/pmem0"),
            initial: &vec![0; 4096],
            last: &last,
            records: &records,
            symbols: &symbols,
            symbol_files: &BTreeMap::new(),
        };
        recorded.write(&path).unwrap();
        let reader = TraceReader::open(&path).unwrap();
        let (mut fences, mut events) = (Vec::new(), reader.events());
        while let Some((_, event)) = events.next_with_id().unwrap() {
            if let EventKind::Fence { .. } = event.kind {
                fences.push(event.thread.0);
            }
        }
        // The second finds nothing that waits; the third thread has only stored.
        assert_eq!(fences, [3, 1, 3]);
    }

    fn mark(mark: Mark, number: u64) -> Record {
        Record::parse(head(GuestRecordKind::Mark, 0, 0, 0, 1), &[mark.word(number)]).unwrap()
    }

    /// Pieces of a string instruction are one event, cut at 4 KiB; the trace explains the final image.
    #[test]
    fn string_stores_are_put_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.fptrace");
        let symbols = Symbols::parse("ffffffff81000000 T copy\nffffffff81000100 T caller\n");
        let symbol_files = symbols.write(folder.path(), &BTreeMap::new()).unwrap();
        let mut records = vec![mark(Mark::Record, 0), mark(Mark::OperationBegin, 0)];
        records.extend((4090..4100).map(|offset| store(STRING, offset, offset as u8)));
        records.push(store(NON_TEMPORAL, 8, 7));
        records.push(mark(Mark::OperationEnd, 0));
        let initial = vec![0; 8192];
        let mut last = initial.clone();
        last[8] = 7;
        (4090..4100).for_each(|offset| last[offset] = offset as u8);
        let recorded = Recorded {
            command: vec!["guest".into()],
            pool: Path::new("/pmem0"),
            initial: &initial,
            last: &last,
            records: &records,
            symbols: &symbols,
            symbol_files: &symbol_files,
        };
        recorded.write(&path).unwrap();
        let reader = TraceReader::open(&path).unwrap();
        let mut lengths = Vec::new();
        let mut events = reader.events();
        while let Some((_, event)) = events.next_with_id().unwrap() {
            if let EventKind::Store { bytes, .. } = event.kind {
                lengths.push(bytes.len());
            }
        }
        assert_eq!(lengths, [6, 4, 1]);
        let report = verify(&path).unwrap();
        assert!(report.pools.iter().all(|pool| pool.differing_bytes == 0), "{report:?}");
    }
}
