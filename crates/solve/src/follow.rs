//! Follows the input through a run: the sink for a recorder in values mode.

use std::collections::BTreeMap;

use record::flow::{BlockId, FlowSink, InputSource, Part};
use rustc_hash::FxHashSet;
use trace::event::{CodeAddr, Place, ProcessId, ThreadId};

use crate::channel::Channels;
use crate::compile::{Block, compile};
use crate::expr::Arena;
use crate::machine::{Machine, Process, Shared, Thread};
use crate::path::Path;

/// Which bytes of each source are free, and where they are in the input. Bytes that are not here are fixed.
pub type FreeBytes = BTreeMap<InputSource, Vec<Option<u32>>>;

/// Give it to a recorder. One for each run.
#[derive(Debug, Default)]
pub struct Follow {
    shared: Shared,
    free: FreeBytes,
    blocks: Vec<Option<Block>>,
    executed: FxHashSet<u32>,
    threads: Vec<Option<(usize, Thread)>>,
    processes: Vec<Process>,
    /// Threads that ran beside the first.
    more_threads: u32,
    /// Files with code, where they lie in the first process.
    mapped: Vec<Mapped>,
    code_changed: u64,
    known_code: BTreeMap<u64, Box<[u8]>>,
    channels: Channels,
}

/// A file with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    pub address: u64,
    pub len: u64,
    pub path: String,
    pub offset: u64,
}

/// What was followed.
#[derive(Debug)]
pub struct Followed {
    pub arena: Arena,
    pub path: Path,
    /// Executed blocks: first address and length in bytes.
    pub blocks: Vec<(u64, u64)>,
    pub mapped: Vec<Mapped>,
    /// Where indirect jumps and calls went: from, to.
    pub ways: Vec<(u64, u64)>,
    pub more_threads: u32,
    /// Code that changed while it was there: executed again with other bytes.
    pub code_changed: u64,
}

impl Follow {
    /// For a run with this input, of which these bytes are free. `driven`: the first process is a driver; the program is what it starts.
    pub fn new(input: &[u8], free: FreeBytes, driven: bool) -> Follow {
        let shared = Shared { arena: Arena::of(input), ..Shared::default() };
        let first = Process { is_driver: driven, ..Process::default() };
        Follow { shared, free, processes: vec![first], ..Follow::default() }
    }

    pub fn into_followed(self) -> Followed {
        let mut blocks: Vec<(u64, u64)> = self
            .executed
            .iter()
            .filter_map(|&id| self.blocks.get(id as usize)?.as_ref().map(|block| (block.pc, block.len)))
            .collect();
        blocks.sort_unstable();
        blocks.dedup();
        let mut ways: Vec<(u64, u64)> = self.shared.ways.into_iter().collect();
        ways.sort_unstable();
        Followed {
            arena: self.shared.arena,
            path: self.shared.path,
            blocks,
            mapped: self.mapped,
            ways,
            more_threads: self.more_threads,
            code_changed: self.code_changed,
        }
    }

    fn process(&mut self, process: ProcessId) -> &mut Process {
        let at = process.0 as usize;
        if self.processes.len() <= at {
            self.processes.resize_with(at + 1, Process::default);
        }
        &mut self.processes[at]
    }

    fn set_thread(&mut self, thread: ThreadId, process: ProcessId) {
        self.process(process);
        let at = thread.0 as usize;
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, || None);
        }
        self.threads[at] = Some((process.0 as usize, Thread::default()));
    }

    fn execute(&mut self, thread: ThreadId, id: BlockId, part: Option<Part>, words: &[u64]) {
        let Some(Some(block)) = self.blocks.get(id.0 as usize) else { return };
        let Some(Some((process, thread))) = self.threads.get_mut(thread.0 as usize) else { return };
        if !self.processes[*process].is_driver {
            self.executed.insert(id.0);
        }
        let all = block.instructions.len();
        let Part { from, to } = part.unwrap_or(Part { from: 0, to: all });
        let process = &mut self.processes[*process];
        let (from, to) = (from.min(all), to.min(all));
        Machine { shared: &mut self.shared, process, thread }.execute(block, from.min(to), to, words);
    }
}

impl FlowSink for Follow {
    fn define(&mut self, block: BlockId, process: ProcessId, pc: u64, _code: CodeAddr, bytes: &[u8]) {
        let at = block.0 as usize;
        if self.blocks.len() <= at {
            self.blocks.resize_with(at + 1, || None);
        }
        if !self.process(process).is_driver {
            let known = self.known_code.entry(pc).or_insert_with(|| bytes.into());
            let both = known.len().min(bytes.len());
            if known[..both] != bytes[..both] {
                self.code_changed += 1;
                *known = bytes.into();
            }
        }
        self.blocks[at] = Some(compile(pc, bytes));
    }

    fn executed(&mut self, thread: ThreadId, block: BlockId, words: &[u64]) {
        self.execute(thread, block, None, words);
    }

    fn part(&mut self, thread: ThreadId, block: BlockId, part: Part, words: &[u64]) {
        self.execute(thread, block, Some(part), words);
    }

    fn kernel_wrote(&mut self, thread: ThreadId, address: u64, len: u64) {
        let Some(Some((process, _))) = self.threads.get(thread.0 as usize) else { return };
        self.processes[*process].memory.clear(address, len);
    }

    fn input(&mut self, thread: ThreadId, source: InputSource, from: u64, address: u64, len: u64) {
        let Some(Some((process, _))) = self.threads.get(thread.0 as usize) else { return };
        let process = *process;
        let Some(free) = self.free.get(&source) else { return };
        // An argument that was cut short at a zero byte could go on there.
        let is_argument = matches!(source, InputSource::Argument(_));
        let end = free.get((from + len) as usize).copied().flatten().filter(|_| is_argument);
        let len = len + u64::from(end.is_some());
        for (at, byte) in free.iter().enumerate().skip(from as usize).take(len as usize) {
            let expr = byte.map(|index| self.shared.arena.input(index));
            self.shared.path.counts.input += u64::from(expr.is_some());
            self.processes[process].memory.set(address + (at as u64 - from), expr);
        }
    }

    fn sent(&mut self, thread: ThreadId, address: u64, content: &[u8]) {
        let Some(Some((process, _))) = self.threads.get(thread.0 as usize) else { return };
        let bytes = self.processes[*process].memory.load(address, content.len());
        self.channels.send(content, bytes);
    }

    fn received(&mut self, thread: ThreadId, address: u64, content: &[u8]) {
        let Some(Some((process, _))) = self.threads.get(thread.0 as usize) else { return };
        let bytes = self.channels.receive(content);
        let memory = &mut self.processes[*process].memory;
        for (at, byte) in bytes.into_iter().enumerate().filter(|(_, byte)| byte.is_some()) {
            memory.set(address + at as u64, byte);
        }
    }

    fn taken(&mut self, thread: ThreadId, address: u64, len: u64) {
        let Some(Some((process, thread))) = self.threads.get_mut(thread.0 as usize) else { return };
        Machine { shared: &mut self.shared, process: &mut self.processes[*process], thread }.taken(address, len);
    }

    fn mapped(&mut self, _process: ProcessId, _address: u64, _len: u64, _place: Place) {}

    fn code_mapped(&mut self, process: ProcessId, address: u64, len: u64, path: &str, offset: u64) {
        let of = self.process(process);
        of.constants.mapped(address, path, offset);
        let is_driver = of.is_driver;
        let mapped = Mapped { address, len, path: path.to_owned(), offset };
        if !is_driver && !self.mapped.contains(&mapped) {
            self.mapped.push(mapped);
        }
    }

    fn thread_started(&mut self, thread: ThreadId, process: ProcessId, _parent: Option<ThreadId>) {
        self.more_threads += 1;
        self.set_thread(thread, process);
    }

    fn process_started(&mut self, process: ProcessId, thread: ThreadId, parent: Option<ProcessId>, _shares: bool) {
        self.set_thread(thread, process);
        if let Some(parent) = parent {
            let copy = self.process(parent).clone();
            *self.process(process) = copy;
        }
    }

    fn process_exec(&mut self, process: ProcessId, thread: ThreadId) {
        *self.process(process) = Process::default();
        // Another program lies where this one did.
        self.known_code.clear();
        self.set_thread(thread, process);
    }
}
