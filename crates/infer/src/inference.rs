//! The flow of a whole run: threads, processes and blocks, and the conditions that come of it.

use record::flow::{BlockId, FlowSink, Part};
use trace::event::{CodeAddr, Place, ProcessId, ThreadId};

use crate::compile::compile;
use crate::conditions::Conditions;
use crate::labels::LabelSets;
use crate::machine::{Machine, Process, Shared, Thread};
use crate::names::Names;
use crate::op::Block;

/// Labels in all sets together before those that nothing carries any more are thrown away.
const COLLECT_AT: usize = 1 << 24;

/// Follows the flow of a run and infers conditions. Give it to a recorder.
///
/// A process that is forked begins with its parent's memory and pools, and with registers that carry nothing.
#[derive(Debug)]
pub struct Inference {
    shared: Shared,
    blocks: Vec<Option<Block>>,
    threads: Vec<Option<(usize, Thread)>>,
    processes: Vec<Process>,
    collect_at: usize,
}

impl Default for Inference {
    fn default() -> Self {
        let (shared, blocks, threads, processes) = Default::default();
        Inference { shared, blocks, threads, processes, collect_at: COLLECT_AT }
    }
}

impl Inference {
    /// With sets of at most so many labels, instead of [`MOST_LABELS`](crate::labels::MOST_LABELS).
    pub fn with_most_labels(most: usize) -> Self {
        let shared = Shared { sets: LabelSets::with_cap(most), ..Shared::default() };
        Inference { shared, ..Inference::default() }
    }

    /// What was inferred so far.
    pub fn conditions(&self) -> Conditions {
        self.shared.hints.conditions(&self.shared.sets)
    }

    /// What was inferred so far about places that are stored to by another run, which calls pools and instructions by other names.
    pub fn conditions_for(&self, other: &Names<'_>) -> Conditions {
        self.shared.hints.conditions_about(&self.shared.sets, |place| other.is_stored(place)).renamed(other)
    }

    /// How many sets of labels there are, and how many labels they have together.
    pub fn sets(&self) -> (usize, usize) {
        self.shared.sets.size()
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

    #[inline]
    fn execute(&mut self, thread: ThreadId, block: BlockId, part: Option<Part>, words: &[u64]) {
        let Some(Some(block)) = self.blocks.get(block.0 as usize) else { return };
        let Some(Some((process, thread))) = self.threads.get_mut(thread.0 as usize) else { return };
        let whole = Part { from: 0, to: block.instructions.len() - 1 };
        let Part { from, to } = part.unwrap_or(whole);
        let process = &mut self.processes[*process];
        Machine { shared: &mut self.shared, process, thread }.execute(block, from.min(to), to.min(whole.to), words);
        if self.shared.sets.size().1 > self.collect_at {
            self.collect();
        }
    }

    /// Throws away the sets that nothing carries any more.
    #[cold]
    fn collect(&mut self) {
        let Shared { sets, hints } = &mut self.shared;
        let mut collection = sets.begin_collection();
        for (_, thread) in self.threads.iter_mut().flatten() {
            for value in thread.registers.values_mut() {
                *value = collection.rename_value(sets, *value);
            }
            thread.control.rename(sets, &mut collection);
        }
        for process in &mut self.processes {
            process.shadow.rename(sets, &mut collection);
        }
        hints.forget_sets();
        // Not again before something was gained.
        self.collect_at = COLLECT_AT.max(sets.size().1 * 2);
    }
}

impl FlowSink for Inference {
    fn define(&mut self, block: BlockId, process: ProcessId, pc: u64, code: CodeAddr, bytes: &[u8]) {
        let at = block.0 as usize;
        if self.blocks.len() <= at {
            self.blocks.resize_with(at + 1, || None);
        }
        self.blocks[at] = Some(compile(pc, code, bytes));
        self.process(process).code.define(pc, bytes);
    }

    fn executed(&mut self, thread: ThreadId, block: BlockId, words: &[u64]) {
        self.execute(thread, block, None, words);
    }

    fn part(&mut self, thread: ThreadId, block: BlockId, part: Part, words: &[u64]) {
        self.execute(thread, block, Some(part), words);
    }

    fn kernel_wrote(&mut self, thread: ThreadId, address: u64, len: u64) {
        let Some(Some((process, _))) = self.threads.get(thread.0 as usize) else { return };
        let process = &mut self.processes[*process];
        match process.mapped.find(address, len) {
            Some(span) => self.shared.hints.mark_stored(span),
            None => process.shadow.clear(address, len),
        }
    }

    fn mapped(&mut self, process: ProcessId, address: u64, len: u64, place: Place) {
        self.process(process).mapped.map(address, len, place);
    }

    fn unmapped(&mut self, process: ProcessId, address: u64, len: u64) {
        self.process(process).mapped.unmap(address, len);
    }

    fn code_mapped(&mut self, process: ProcessId, address: u64, len: u64, path: &str, offset: u64) {
        self.process(process).code.map(address, len, path, offset);
    }

    fn thread_started(&mut self, thread: ThreadId, process: ProcessId, _parent: Option<ThreadId>) {
        self.set_thread(thread, process);
    }

    fn process_started(&mut self, process: ProcessId, thread: ThreadId, parent: Option<ProcessId>, _shares: bool) {
        self.set_thread(thread, process);
        if let Some(parent) = parent {
            let parent = self.process(parent);
            let (shadow, mapped, code) = (parent.shadow.clone(), parent.mapped.clone(), parent.code.clone());
            *self.process(process) = Process { shadow, mapped, code, ..Process::default() };
        }
    }

    fn process_exec(&mut self, process: ProcessId, thread: ThreadId) {
        *self.process(process) = Process::default();
        self.set_thread(thread, process);
    }
}
