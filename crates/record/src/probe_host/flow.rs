//! The flow of the run: from entries in the probe's records to calls of the sink.

use std::fmt;
use std::rc::Rc;
use std::sync::MutexGuard;

use iced_x86::{Decoder, DecoderOptions};
use isa::flow::Layout;
use trace::event::{Place, PoolOffset, ProcessId, ThreadId};
use wire::record::{Header, flow, kind};

use super::payload::Payload;
use super::translate::{Refusal, Translator};
use crate::flow::{BlockId, FlowHandle, FlowSink, InputSource, Part};

/// A block of a process, by the probe's number.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    id: BlockId,
    /// Words logged by the first n instructions; empty: not defined.
    words: Rc<[u16]>,
}

/// Who takes the flow.
pub(super) struct Flow<'a> {
    pub(super) sink: MutexGuard<'a, dyn FlowSink + 'static>,
    blocks: u32,
    /// Operands are logged, too.
    values: bool,
}

impl fmt::Debug for Flow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("blocks", &self.blocks).finish_non_exhaustive()
    }
}

impl<'a> Flow<'a> {
    pub fn new(handle: &'a FlowHandle, values: bool) -> Flow<'a> {
        Flow { sink: handle.take(), blocks: 0, values }
    }

    pub fn finish(&mut self) {
        self.sink.finished();
    }
}

impl Translator<'_> {
    /// Records that only flow mode has.
    pub(super) fn flow(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Refusal> {
        match header.kind {
            kind::FLOW => self.executed(header, bytes),
            kind::BLOCK => self.block(header, bytes),
            kind::FLOW_WRITE => {
                let len = Payload(bytes).u64()?;
                let Some(flow) = &mut self.flow else { return Err(UNASKED) };
                flow.sink.kernel_wrote(ThreadId(header.thread.into()), header.address, len);
                Ok(())
            }
            kind::FLOW_INPUT => {
                let mut payload = Payload(bytes);
                let (len, from) = (payload.u64()?, payload.u64()?);
                let Some(flow) = &mut self.flow else { return Err(UNASKED) };
                let source = match header.site {
                    0 => InputSource::File,
                    n => InputSource::Argument(n - 1),
                };
                flow.sink.input(ThreadId(header.thread.into()), source, from, header.address, len);
                Ok(())
            }
            kind::FLOW_CHANNEL => {
                let Some(flow) = &mut self.flow else { return Err(UNASKED) };
                let thread = ThreadId(header.thread.into());
                match header.aux {
                    0 => flow.sink.sent(thread, header.address, bytes),
                    2 => flow.sink.taken(thread, header.address, bytes.len() as u64),
                    _ => flow.sink.received(thread, header.address, bytes),
                }
                Ok(())
            }
            _ => Err(Refusal::Damaged("a record of an unknown kind")),
        }
    }

    fn block(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Refusal> {
        let at = self.process_index(header.thread)?;
        let process = &mut self.processes[at];
        let Some(flow) = &mut self.flow else { return Err(UNASKED) };
        let instructions: Vec<_> =
            Decoder::with_ip(64, bytes, header.address, DecoderOptions::NONE).into_iter().collect();
        let layout = if flow.values { Layout::with_values(&instructions) } else { Layout::new(&instructions) };
        let words = (0..=instructions.len()).map(|n| layout.words_of(n) as u16).collect();
        let id = BlockId(flow.blocks);
        flow.blocks += 1;
        let code = process.code.locate(&mut self.writer, header.address);
        flow.sink.define(id, process.id, header.address, code, bytes);
        if !process.define_block(header.site, Block { id, words }) {
            return Err(Refusal::Damaged("a block with an absurd number"));
        }
        Ok(())
    }

    fn executed(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Refusal> {
        let at = self.process_index(header.thread)?;
        let blocks = self.processes[at].blocks();
        let Some(flow) = &mut self.flow else { return Err(UNASKED) };
        let thread = ThreadId(header.thread.into());
        // SAFETY: any bits are a u64; records are aligned to 8 in the ring, so nothing is cut off at the front.
        let (unaligned, mut words, _) = unsafe { bytes.align_to::<u64>() };
        if !unaligned.is_empty() {
            return Err(Refusal::Damaged("a flow record that is not aligned"));
        }
        let mut from = usize::from(header.aux);
        while let [first, rest @ ..] = words {
            let (number, part) = flow::read(*first).ok_or(Refusal::Damaged("an entry that names no block"))?;
            let Some(block) = blocks.get(number as usize) else {
                return Err(Refusal::Damaged("a block that was never defined"));
            };
            let instructions = part.map_or(block.words.len().wrapping_sub(1), |part| part as usize);
            let Some(&count) = block.words.get(instructions) else {
                return Err(Refusal::Damaged("more instructions than the block has"));
            };
            let Some((entry, after)) = rest.split_at_checked(count as usize) else {
                return Err(Refusal::Damaged("a cut entry"));
            };
            match part {
                None if from == 0 => flow.sink.executed(thread, block.id, entry),
                _ => flow.sink.part(thread, block.id, Part { from, to: instructions }, entry),
            }
            (words, from) = (after, 0);
        }
        Ok(())
    }

    /// What a record that belongs to every recording means for the flow.
    pub(super) fn tell_flow(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Refusal> {
        if self.flow.is_none() {
            return Ok(());
        }
        let mut payload = Payload(bytes);
        let thread = ThreadId(header.thread.into());
        match header.kind {
            kind::MAP | kind::UNMAP => {
                let pool = self.pool(payload.u32()?)?;
                let _zero = payload.u32()?;
                let (offset, len) = (PoolOffset(payload.u64()?), payload.u64()?);
                let at = self.process_index(header.thread)?;
                let process = self.processes[at].id;
                let Some(flow) = &mut self.flow else { return Ok(()) };
                match header.kind {
                    kind::MAP => flow.sink.mapped(process, header.address, len, Place { pool, offset }),
                    _ => flow.sink.unmapped(process, header.address, len),
                }
            }
            kind::EXEC => {
                let at = self.own_index(header.thread)?;
                let process = self.processes[at].id;
                if let Some(flow) = &mut self.flow {
                    flow.sink.process_exec(process, thread);
                }
            }
            _ => {
                let Some(flow) = &mut self.flow else { return Ok(()) };
                match header.kind {
                    kind::THREAD_START => {
                        let (process, parent) = (ProcessId(payload.u32()?), ThreadId(payload.u32()?));
                        flow.sink.thread_started(thread, process, Some(parent));
                    }
                    kind::PROCESS_START => {
                        let (process, parent) = (ProcessId(payload.u32()?), payload.u32()?);
                        let parent = (parent != !0).then_some(ProcessId(parent));
                        flow.sink.process_started(process, thread, parent, header.aux == 1);
                    }
                    kind::OPERATION if header.aux == 0 => flow.sink.operation_begin(thread, header.address),
                    kind::OPERATION => flow.sink.operation_end(thread, header.address),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

const UNASKED: Refusal = Refusal::Damaged("flow that nobody asked for");
