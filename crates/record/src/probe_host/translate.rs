//! From the probe's records to the events of a trace: addresses become places in pools and modules.

use trace::event::{
    CodeAddr, ContextId, Event, EventKind, ExitStatus, FenceKind, FlushKind, FlushTarget, Place, PoolId, PoolOffset,
    ProcessId, StoreKind, ThreadId, WatchId,
};
use trace::{Note, TraceWriter};
use wire::record::{Header, fence, flush, kind, store};

use super::code_map::ElfCache;
use super::error::HostError;
use super::flow::Flow;
use super::payload::{Payload, Short};
use super::pool_files::{PoolFiles, WirePool};
use super::process::{InstructionName, Process};
use crate::file_book::FileBook;
use crate::recording::Activity;
use supervise::probe::Shared;

const NO_PROCESS: u32 = u32::MAX;

/// Why a record could not be translated.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The record makes no sense; the collector adds where it was.
    Damaged(&'static str),
    Host(HostError),
}

impl From<Short> for Refusal {
    fn from(_: Short) -> Refusal {
        Refusal::Damaged("a record that is too short")
    }
}

impl From<trace::WriteError> for Refusal {
    fn from(error: trace::WriteError) -> Refusal {
        Refusal::Host(HostError::Write(error))
    }
}

impl From<HostError> for Refusal {
    fn from(error: HostError) -> Refusal {
        Refusal::Host(error)
    }
}

/// Everything that the records refer to, of all processes.
#[derive(Debug)]
pub(super) struct Translator<'a> {
    pub writer: TraceWriter,
    pub(super) shared: &'a Shared,
    pub(super) processes: Vec<Process>,
    /// By thread number: place in `processes`.
    pub(super) threads: Vec<u32>,
    pub(super) pools: PoolFiles,
    pub(super) book: FileBook,
    pub(super) elf: ElfCache,
    pub(super) watch_count: usize,
    seen: Vec<bool>,
    pub activity: Activity,
    pub notes: Vec<Note>,
    pub flow: Option<Flow<'a>>,
}

impl<'a> Translator<'a> {
    pub fn new(writer: TraceWriter, shared: &'a Shared, pools: PoolFiles, watches: Vec<String>) -> Translator<'a> {
        Translator {
            writer,
            shared,
            processes: Vec::new(),
            threads: Vec::new(),
            pools,
            book: FileBook::default(),
            watch_count: watches.len(),
            elf: ElfCache::new(watches),
            seen: vec![false; InstructionName::LIMIT],
            activity: Activity::default(),
            notes: Vec::new(),
            flow: None,
        }
    }

    /// Takes one record.
    #[inline]
    pub fn record(&mut self, header: &Header, payload: &[u8]) -> Result<(), Refusal> {
        match header.kind {
            kind::STORE => self.store(header, payload),
            kind::RMW => self.rmw(header, payload),
            kind::FLUSH => self.flush(header),
            kind::FENCE => self.fence(header),
            kind::LOAD => self.load(header, payload),
            kind::PAD => Ok(()),
            kind::FLOW | kind::BLOCK | kind::FLOW_WRITE | kind::FLOW_INPUT | kind::FLOW_CHANNEL => {
                self.flow(header, payload)
            }
            kind::MAP..=kind::RESIZE => {
                self.memory(header, payload)?;
                self.tell_flow(header, payload)
            }
            kind::THREAD_START..=kind::RETURN => {
                self.control_flow(header, payload)?;
                self.tell_flow(header, payload)
            }
            kind::FILE_BEFORE..=kind::FILE_SYNC => self.file_change(header, payload),
            kind::SITE..=kind::PLEASE => self.definition(header, payload),
            _ => Err(Refusal::Damaged("a record of an unknown kind")),
        }
    }

    /// The process whose tables speak for a thread: its own, or the one whose memory it shares.
    pub(super) fn process_index(&self, thread: u16) -> Result<usize, Refusal> {
        let own = self.own_index(thread)?;
        Ok(self.processes[own].shares.unwrap_or(own))
    }

    /// The process of a thread.
    pub(super) fn own_index(&self, thread: u16) -> Result<usize, Refusal> {
        match self.threads.get(thread as usize) {
            Some(&at) if at != NO_PROCESS => Ok(at as usize),
            _ => Err(Refusal::Damaged("a record of a thread that was never started")),
        }
    }

    /// Says which process a thread belongs to.
    pub(super) fn assign(&mut self, thread: u16, process: usize) {
        let at = thread as usize;
        if at >= self.threads.len() {
            self.threads.resize(at + 1, NO_PROCESS);
        }
        self.threads[at] = process as u32;
    }

    /// The instruction and call path of a record.
    #[inline]
    fn origin(&mut self, header: &Header, process: usize) -> Result<(CodeAddr, ContextId, InstructionName), Refusal> {
        let process = &self.processes[process];
        let site = process.site(header.site).ok_or(Refusal::Damaged("an instruction that was never defined"))?;
        let context = process.context(header.context).ok_or(Refusal::Damaged("a call path that was never defined"))?;
        Ok((site.pc, context, site.name))
    }

    pub(super) fn push(&mut self, header: &Header, kind: EventKind<'_>) -> Result<(), Refusal> {
        let process = self.process_index(header.thread)?;
        let (pc, context, _) = self.origin(header, process)?;
        self.writer.push(&Event { thread: ThreadId(header.thread.into()), context, pc, kind })?;
        Ok(())
    }

    /// As `push`, for instructions that act on PM: the trace lists the kinds that were met.
    #[inline]
    fn push_instruction(&mut self, header: &Header, process: usize, kind: EventKind<'_>) -> Result<(), Refusal> {
        let (pc, context, name) = self.origin(header, process)?;
        if !self.seen[name.index()] {
            self.seen[name.index()] = true;
            if let Some(text) = name.text().filter(|_| header.site != 0) {
                self.writer.instruction_seen(&text);
            }
        }
        self.writer.push(&Event { thread: ThreadId(header.thread.into()), context, pc, kind })?;
        Ok(())
    }

    #[inline]
    fn store(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Refusal> {
        let kind = match header.aux {
            store::PLAIN => StoreKind::Plain,
            store::NON_TEMPORAL => StoreKind::NonTemporal,
            store::DIRECT64 => StoreKind::Direct64,
            _ => return Err(Refusal::Damaged("a store of an unknown kind")),
        };
        self.activity.stores += 1;
        self.activity.nt_stores += u64::from(kind != StoreKind::Plain);
        let process = self.process_index(header.thread)?;
        if let Some(place) = self.processes[process].mappings.whole(header.address, bytes.len() as u64) {
            return self.push_instruction(header, process, EventKind::Store { place, kind, bytes });
        }
        for (place, range) in self.pieces(process, header.address, bytes.len())? {
            self.push_instruction(header, process, EventKind::Store { place, kind, bytes: &bytes[range] })?;
        }
        Ok(())
    }

    fn rmw(&mut self, header: &Header, payload: &[u8]) -> Result<(), Refusal> {
        self.activity.rmws += 1;
        if !payload.len().is_multiple_of(2) {
            return Err(Refusal::Damaged("old and new values of different length"));
        }
        let (old, new) = payload.split_at(payload.len() / 2);
        let process = self.process_index(header.thread)?;
        if let Some(place) = self.processes[process].mappings.whole(header.address, old.len() as u64) {
            return self.push_instruction(header, process, EventKind::Rmw { place, old, new });
        }
        for (place, range) in self.pieces(process, header.address, old.len())? {
            let (old, new) = (&old[range.clone()], &new[range]);
            self.push_instruction(header, process, EventKind::Rmw { place, old, new })?;
        }
        Ok(())
    }

    /// For an access that no single mapping holds; at least a part must be PM, or it would not have been recorded.
    fn pieces(
        &mut self,
        process: usize,
        address: u64,
        len: usize,
    ) -> Result<Vec<(Place, std::ops::Range<usize>)>, Refusal> {
        let pieces = self.processes[process].mappings.pieces(address, len as u64);
        if pieces.is_empty() && len > 0 {
            return Err(Refusal::Damaged("an access to memory that is no pool"));
        }
        Ok(pieces)
    }

    fn flush(&mut self, header: &Header) -> Result<(), Refusal> {
        let kind = match header.aux {
            flush::CLFLUSH => FlushKind::Clflush,
            flush::CLFLUSHOPT => FlushKind::Clflushopt,
            flush::CLWB => FlushKind::Clwb,
            flush::CLDEMOTE => FlushKind::Cldemote,
            _ => return Err(Refusal::Damaged("a flush of an unknown kind")),
        };
        let process = self.process_index(header.thread)?;
        let target = match self.processes[process].mappings.whole(header.address, 1) {
            Some(place) => {
                self.activity.flushes += 1;
                FlushTarget::Pool(place)
            }
            None => FlushTarget::Volatile(header.address),
        };
        self.push_instruction(header, process, EventKind::Flush { kind, target })
    }

    fn fence(&mut self, header: &Header) -> Result<(), Refusal> {
        let kind = match header.aux {
            fence::SFENCE => FenceKind::Sfence,
            fence::MFENCE => FenceKind::Mfence,
            fence::LOCKED => FenceKind::Locked,
            _ => return Err(Refusal::Damaged("a fence of an unknown kind")),
        };
        self.activity.fences += 1;
        let process = self.process_index(header.thread)?;
        self.push_instruction(header, process, EventKind::Fence { kind })
    }

    fn load(&mut self, header: &Header, payload: &[u8]) -> Result<(), Refusal> {
        let len = Payload(payload).u64()?;
        self.activity.loads += 1;
        let process = self.process_index(header.thread)?;
        for (place, range) in self.pieces(process, header.address, len as usize)? {
            let len = u32::try_from(range.len()).map_err(|_| Refusal::Damaged("a load of absurd length"))?;
            self.push(header, EventKind::Load { place, len })?;
        }
        Ok(())
    }

    /// Mappings, kernel writes and changes of the pools' files.
    fn memory(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Refusal> {
        let mut payload = Payload(bytes);
        let address = header.address;
        if header.kind == kind::KERNEL_WRITE {
            self.activity.kernel_writes += 1;
            let process = self.process_index(header.thread)?;
            for (place, range) in self.pieces(process, address, bytes.len())? {
                self.push(header, EventKind::KernelWrite { place, bytes: &bytes[range] })?;
            }
            return Ok(());
        }
        let pool = self.pool(payload.u32()?)?;
        let at = |offset| Place { pool, offset: PoolOffset(offset) };
        match header.kind {
            kind::FSYNC => {
                self.activity.syncs += 1;
                return self.push(header, EventKind::Fsync { pool, data_only: header.aux == 1 });
            }
            kind::RESIZE => return self.push(header, EventKind::Resize { pool, len: address }),
            _ => {}
        }
        let _zero = payload.u32()?;
        match header.kind {
            kind::FILE_WRITE => {
                self.activity.kernel_writes += 1;
                return self.push(header, EventKind::FileWrite { place: at(address), bytes: payload.0 });
            }
            kind::FILE_ZERO => {
                self.activity.kernel_writes += 1;
                let len = payload.u64()?;
                return self.push(header, EventKind::FileZero { place: at(address), len });
            }
            _ => {}
        }
        let (offset, len) = (payload.u64()?, payload.u64()?);
        let place = at(offset);
        let process = self.process_index(header.thread)?;
        match header.kind {
            kind::MAP => {
                self.activity.maps += 1;
                self.processes[process].mappings.map(address, len, pool, offset);
                self.push(header, EventKind::Map { place, len, address })
            }
            kind::UNMAP => {
                self.processes[process].mappings.unmap(address, len);
                self.push(header, EventKind::Unmap { place, len, address })
            }
            _ => {
                self.activity.syncs += 1;
                self.push(header, EventKind::Msync { place, len })
            }
        }
    }

    pub(super) fn pool(&self, number: u32) -> Result<PoolId, Refusal> {
        self.pools.id(WirePool(number)).ok_or(Refusal::Damaged("a pool that was never announced"))
    }

    /// Threads, processes, operations and watched functions.
    fn control_flow(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Refusal> {
        let mut payload = Payload(bytes);
        match header.kind {
            kind::THREAD_START => {
                let id = ProcessId(payload.u32()?);
                let process = self.processes.iter().position(|p| p.id == id);
                self.assign(header.thread, process.ok_or(Refusal::Damaged("a thread of an unknown process"))?);
                self.push(header, EventKind::ThreadStart)
            }
            kind::THREAD_END => self.push(header, EventKind::ThreadEnd),
            kind::PROCESS_START => {
                let (id, parent, pid) = (payload.u32()?, payload.u32()?, payload.u32()?);
                self.start_process(header, ProcessId(id), (parent != !0).then_some(ProcessId(parent)), pid)
            }
            kind::PROCESS_EXIT => {
                let number = header.address as i32;
                let status = if header.aux == 1 { ExitStatus::Signal(number) } else { ExitStatus::Code(number) };
                let process = self.own_index(header.thread)?;
                self.processes[process].ended = true;
                self.push(header, EventKind::ProcessExit { status })
            }
            kind::EXEC => {
                self.push(header, EventKind::Exec { path: &payload.text() })?;
                self.exec(header)
            }
            kind::OPERATION => {
                let index = header.address;
                let begin = EventKind::OperationBegin { index };
                self.push(header, if header.aux == 0 { begin } else { EventKind::OperationEnd { index } })
            }
            kind::CALL => {
                let watch = self.watch(header)?;
                let mut args = [0; 6];
                for arg in &mut args {
                    *arg = payload.u64()?;
                }
                self.push(header, EventKind::Call { watch, args })
            }
            _ => {
                let watch = self.watch(header)?;
                self.push(header, EventKind::Return { watch, value: payload.u64()? })
            }
        }
    }

    fn watch(&self, header: &Header) -> Result<WatchId, Refusal> {
        if header.address >= self.watch_count as u64 {
            return Err(Refusal::Damaged("a call of a function that is not watched"));
        }
        Ok(WatchId(header.address as u32))
    }

    /// Processes that were killed never said that they ended. `first` is how the first one ended.
    pub fn end_killed_processes(&mut self, first: ExitStatus) -> Result<(), Refusal> {
        for at in 0..self.processes.len() {
            let (id, thread, ended) = {
                let p = &self.processes[at];
                (p.id, p.first_thread, p.ended)
            };
            if ended {
                continue;
            }
            self.processes[at].ended = true;
            // How another process was killed is known only to its parent; SIGKILL is what leaves no trace.
            let status = if id == ProcessId(0) { first } else { ExitStatus::Signal(libc::SIGKILL) };
            let kind = EventKind::ProcessExit { status };
            self.writer.push(&Event { thread, context: ContextId(0), pc: CodeAddr::default(), kind })?;
        }
        Ok(())
    }
}
