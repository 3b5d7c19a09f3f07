//! The flow of the run by the reference: each instruction is a block of its own, its words come from the registers.

use std::collections::HashMap;

use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind, Register};
use isa::flow::{Layout, Root, When};
use trace::event::{EventKind, ProcessId, ThreadId};

use super::error::StepError;
use super::execute::{self, Stepped};
use super::ptrace::{self, Registers};
use super::session::{Session, Task};
use crate::flow::{BlockId, FlowHandle};

/// Who takes the flow, and what it knows.
#[derive(Debug)]
pub struct Flow {
    handle: FlowHandle,
    known: HashMap<(ProcessId, u64), Known>,
    next: u32,
}

#[derive(Debug)]
struct Known {
    id: BlockId,
    bytes: Vec<u8>,
    instruction: Instruction,
    layout: Layout,
}

impl Flow {
    pub fn new(handle: FlowHandle) -> Flow {
        Flow { handle, known: HashMap::new(), next: 0 }
    }

    /// What an event of the recording means for the flow.
    pub fn note(&self, thread: ThreadId, process: ProcessId, kind: &EventKind<'_>) {
        let mut sink = self.handle.take();
        match *kind {
            EventKind::Map { place, len, address } => sink.mapped(process, address, len, place),
            EventKind::Unmap { len, address, .. } => sink.unmapped(process, address, len),
            EventKind::OperationBegin { index } => sink.operation_begin(thread, index),
            EventKind::OperationEnd { index } => sink.operation_end(thread, index),
            _ => {}
        }
    }

    pub fn kernel_wrote(&self, thread: ThreadId, address: u64, len: u64) {
        self.handle.take().kernel_wrote(thread, address, len);
    }

    /// A new task. `shares_memory`: a process that uses its parent's memory.
    pub fn born(&self, task: &Task, parent: Option<&Task>, shares_memory: bool) {
        let mut sink = self.handle.take();
        match parent {
            Some(parent) if parent.process == task.process => {
                sink.thread_started(task.thread, task.process, Some(parent.thread));
            }
            _ => sink.process_started(task.process, task.thread, parent.map(|p| p.process), shares_memory),
        }
    }

    pub fn exec(&mut self, task: &Task) {
        self.known.retain(|(process, _), _| *process != task.process);
        self.handle.take().process_exec(task.process, task.thread);
    }

    pub fn finish(&self) {
        self.handle.take().finished();
    }
}

/// As [`execute::execute`], and tells the instruction.
pub fn execute(session: &mut Session, task: &mut Task) -> Result<Stepped, StepError> {
    if session.flow.is_none() {
        return execute::execute(session, task);
    }
    let before = ptrace::registers(task.tid)?;
    let bytes = execute::code_at(task.tid, before.rip);
    let stepped = execute::execute(session, task)?;
    let executed = match stepped {
        Stepped::SystemCall => true,
        // The first step of an image executes nothing; a jump to itself leaves everything as it was.
        Stepped::Done => execute::is_executed(&before, &ptrace::registers(task.tid)?) || jumps_to_itself(&bytes),
        // Half of a repeated string instruction leaves the pc where it was.
        Stepped::Stopped(stop) => {
            execute::stop_registers(task.tid, stop)?.is_some_and(|(_, after)| after.rip != before.rip)
        }
    };
    if executed {
        tell(session, task, &bytes, &before)?;
    }
    Ok(stepped)
}

fn jumps_to_itself(bytes: &[u8]) -> bool {
    let instruction = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
    matches!(instruction.op0_kind(), OpKind::NearBranch64) && instruction.near_branch64() == 0
}

fn tell(session: &mut Session, task: &Task, bytes: &[u8], before: &Registers) -> Result<(), StepError> {
    let Session { flow: Some(flow), modules, trace, .. } = session else { return Ok(()) };
    let pc = before.rip;
    let instruction = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
    let Some(bytes) = bytes.get(..instruction.len()) else { return Ok(()) };
    let key = (task.process, pc);
    if flow.known.get(&key).is_none_or(|known| known.bytes != bytes) {
        let id = BlockId(flow.next);
        flow.next += 1;
        let code = task.space.borrow_mut().code.locate(modules, trace, task.tid, pc);
        flow.handle.take().define(id, task.process, pc, code, bytes);
        let layout = Layout::new(&[instruction]);
        flow.known.insert(key, Known { id, bytes: bytes.to_vec(), instruction, layout });
    }
    let known = &flow.known[&key];
    let mut words = Vec::with_capacity(4);
    for slot in known.layout.slots() {
        let registers = match slot.when {
            When::Before => *before,
            When::After => ptrace::registers(task.tid)?,
        };
        words.push(value(slot.root, &known.instruction, &registers));
    }
    flow.handle.take().executed(task.thread, known.id, &words);
    Ok(())
}

fn value(root: Root, instruction: &Instruction, registers: &Registers) -> u64 {
    let get = |register: Register| general(registers, register);
    match root {
        Root::Register(register) => get(register),
        Root::Sum { base, index, scale, fs } => get(base)
            .wrapping_add(get(index).wrapping_mul(scale.into()))
            .wrapping_add(if fs { registers.fs_base } else { 0 }),
        // Of values mode, which this backend refuses.
        Root::Vector { .. } | Root::Mask(_) | Root::Content { .. } | Root::Condition(_) => 0,
        Root::Operand { .. } => {
            let memory = (0..instruction.op_count()).find(|op| instruction.op_kind(*op) == OpKind::Memory);
            let lookup = |register: Register, _, _| match register {
                Register::FS => Some(registers.fs_base),
                segment if segment.is_segment_register() => Some(0),
                register => Some(get(register)),
            };
            memory.and_then(|op| instruction.virtual_address(op, 0, lookup)).unwrap_or(0)
        }
    }
}

fn general(r: &Registers, register: Register) -> u64 {
    let value = match register.full_register() {
        Register::RAX => r.rax,
        Register::RCX => r.rcx,
        Register::RDX => r.rdx,
        Register::RBX => r.rbx,
        Register::RSP => r.rsp,
        Register::RBP => r.rbp,
        Register::RSI => r.rsi,
        Register::RDI => r.rdi,
        Register::R8 => r.r8,
        Register::R9 => r.r9,
        Register::R10 => r.r10,
        Register::R11 => r.r11,
        Register::R12 => r.r12,
        Register::R13 => r.r13,
        Register::R14 => r.r14,
        Register::R15 => r.r15,
        _ => 0,
    };
    if register.is_gpr32() { value & 0xffff_ffff } else { value }
}
