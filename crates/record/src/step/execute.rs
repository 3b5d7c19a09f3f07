//! One instruction: what it will do, the step, what it did.

use trace::event::{EventKind, FenceKind, FlushTarget, StoreKind};
use yaxpeax_x86::long_mode::Instruction;

use super::effect::{self, Effect, Span, Special};
use super::error::StepError;
use super::ptrace::{self, Registers, Stop, Tid};
use super::session::{Session, Task};
use super::space::{self, Piece};
use super::unknown;
use super::xstate::ExtendedState;
use super::{operand, operations};

/// How a step ended.
#[derive(Debug)]
pub enum Stepped {
    /// The instruction is done and the thread stopped after it.
    Done,
    /// Something else stopped the thread; whatever the instruction did is recorded.
    Stopped(Stop),
    /// The instruction is a system call that the kernel shall see: it has not been executed.
    SystemCall,
}

/// The code bytes at `pc`, as many as an instruction can have.
pub fn code_at(tid: Tid, pc: u64) -> Vec<u8> {
    let mut bytes = vec![0; 15];
    let have = ptrace::read_some(tid, pc, &mut bytes);
    bytes.truncate(have);
    bytes
}

/// Executes the instruction at the thread's pc and records what it does; string instructions as a whole.
pub fn execute(session: &mut Session, task: &mut Task) -> Result<Stepped, StepError> {
    let before = ptrace::registers(task.tid)?;
    returned(session, task, &before)?;
    let pc = before.rip;
    let bytes = code_at(task.tid, pc);
    let predicted = effect::predict(&bytes, &before, || extended_state(task.tid))?;
    let Some((instruction, effect)) = predicted else { return execute_unknown(task, pc, &bytes) };
    match effect.special {
        Special::Syscall => return Ok(Stepped::SystemCall),
        Special::Unsupported(what) => {
            return Err(StepError::Unsupported { pc, instruction: instruction.to_string(), what });
        }
        Special::Repeat => return execute_repeated(session, task, &instruction, before, effect),
        _ => {}
    }
    if emulated(session, task, &instruction, &before, effect.special)? {
        task.last_pc = pc;
        return Ok(Stepped::Done);
    }
    operations::marked(session, task, pc, &bytes)?;
    let effect_special = effect.special;
    let noted = Noted::new(session, task, effect)?;
    ptrace::single_step(task.tid, 0)?;
    let mut stop = wait_for_step(task.tid)?;
    while effect_special == Special::InParts
        && matches!(stop_registers(task.tid, stop)?, Some((true, after)) if after.rip == pc)
    {
        ptrace::single_step(task.tid, 0)?;
        stop = wait_for_step(task.tid)?;
    }
    // The usual case: a trap, and the instruction was not one that traps by itself.
    if stop == Stop::Signal(libc::SIGTRAP) && effect_special != Special::Trap {
        let after = ptrace::registers(task.tid)?;
        if is_executed(&before, &after) {
            noted.record(session, task, &instruction, &before, &after)?;
            task.last_pc = pc;
            return Ok(Stepped::Done);
        }
    }
    let Some((step_trap, after)) = stop_registers(task.tid, stop)? else { return Ok(Stepped::Stopped(stop)) };
    if is_executed(&before, &after) {
        noted.record(session, task, &instruction, &before, &after)?;
        task.last_pc = pc;
    }
    Ok(if step_trap { Stepped::Done } else { Stepped::Stopped(stop) })
}

pub fn extended_state(tid: Tid) -> Result<ExtendedState, StepError> {
    Ok(ExtendedState::new(ptrace::extended_state(tid)?))
}

/// Whether the stop is that of a single step, and the registers; none if the thread is gone.
pub fn stop_registers(tid: Tid, stop: Stop) -> Result<Option<(bool, Registers)>, StepError> {
    match stop {
        Stop::Exited(_) | Stop::Killed(_) => Ok(None),
        Stop::Event(_) => Ok(Some((false, ptrace::registers(tid)?))),
        Stop::Signal(signal) => Ok(Some((signal == libc::SIGTRAP && is_step_trap(tid)?, ptrace::registers(tid)?))),
    }
}

/// Single-step traps have a positive code that is not the kernel's own `int3` code.
fn is_step_trap(tid: Tid) -> Result<bool, StepError> {
    const SI_KERNEL: i32 = 0x80;
    let code = ptrace::signal_code(tid)?;
    Ok(code > 0 && code != SI_KERNEL)
}

fn wait_for_step(tid: Tid) -> Result<Stop, StepError> {
    let waited = ptrace::wait(Some(tid), true)?;
    Ok(waited.expect("a blocking wait reports").1)
}

/// A step that changed none of these executed nothing: it was stopped before (a fault, a signal).
pub fn is_executed(before: &Registers, after: &Registers) -> bool {
    (before.rip, before.rsp, before.rcx) != (after.rip, after.rsp, after.rcx)
}

/// The decoder does not know the bytes: fine if the processor does not either, or if they cannot touch PM.
fn execute_unknown(task: &mut Task, pc: u64, bytes: &[u8]) -> Result<Stepped, StepError> {
    let harmless = !task.space.borrow().has_mappings() || unknown::has_register_operands(bytes);
    ptrace::single_step(task.tid, 0)?;
    let stop = wait_for_step(task.tid)?;
    match stop_registers(task.tid, stop)? {
        Some((true, _)) if harmless => Ok(Stepped::Done),
        Some((true, after)) if after.rip != pc => {
            let bytes = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
            Err(StepError::UnknownInstruction { pc, bytes })
        }
        _ => Ok(Stepped::Stopped(stop)),
    }
}

/// Answers instructions whose results would differ from run to run.
fn emulated(
    session: &mut Session,
    task: &mut Task,
    instruction: &Instruction,
    before: &Registers,
    special: Special,
) -> Result<bool, StepError> {
    let mut after = *before;
    match special {
        Special::TimeStamp { with_processor } if !session.options.real_tsc => {
            let stamp = session.world.time_stamp();
            (after.rax, after.rdx) = (stamp & 0xffff_ffff, stamp >> 32);
            if with_processor {
                after.rcx = 0;
            }
        }
        Special::ProcessorId(register) if !session.options.real_tsc => operand::set_register(&mut after, register, 0),
        Special::Random(register) if !session.options.real_random => {
            let word = session.world.random_word();
            operand::set_register(&mut after, register, word);
            // SDM, RDRAND: CF = 1 for success; OF, SF, ZF, AF and PF are cleared.
            const ARITHMETIC: u64 = 0x8d5;
            after.eflags = after.eflags & !ARITHMETIC | 1;
        }
        _ => return Ok(false),
    }
    after.rip += u64::from(operand::length(instruction));
    ptrace::set_registers(task.tid, &after)?;
    Ok(true)
}

/// What must be known from before the step.
struct Noted {
    effect: Effect,
    /// PM that it will store to, in the order of the events, with the old content for locked instructions.
    stores: Vec<(Piece, Vec<u8>)>,
    /// PM that its operand touches though the table says that it does not store; must stay as it is.
    untouched: Vec<(Piece, Vec<u8>)>,
}

impl Noted {
    fn new(session: &Session, task: &Task, effect: Effect) -> Result<Noted, StepError> {
        let mut stores = Vec::new();
        for span in &effect.stores {
            for piece in session.pieces(task, span.address, span.len) {
                let old = if effect.locked { session.content(task, piece)? } else { Vec::new() };
                stores.push((piece, old));
            }
        }
        let mut untouched = Vec::new();
        if effect.stores.is_empty() {
            for Span { address, len } in &effect.loads {
                for piece in session.pieces(task, *address, *len) {
                    untouched.push((piece, session.content(task, piece)?));
                }
            }
        }
        Ok(Noted { effect, stores, untouched })
    }

    /// Writes the events of an instruction that has been executed.
    fn record(
        self,
        session: &mut Session,
        task: &mut Task,
        instruction: &Instruction,
        before: &Registers,
        after: &Registers,
    ) -> Result<(), StepError> {
        let pc = before.rip;
        entered(session, task, before)?;
        for (piece, old) in &self.untouched {
            if session.content(task, *piece)? != *old {
                let address = piece.address;
                return Err(StepError::MissedStore { pc, instruction: instruction.to_string(), address });
            }
        }
        if !self.effect.locked {
            record_loads(session, task, pc, &self.effect.loads)?;
        }
        if !self.stores.is_empty() || matches!(self.effect.special, Special::Flush(..) | Special::Fence(_)) {
            session.trace.instruction_seen(&name(instruction));
        }
        match self.effect.special {
            Special::Flush(kind, address) => {
                let target = match session.pieces(task, address, 1).first() {
                    Some(piece) => FlushTarget::Pool(piece.place),
                    None => FlushTarget::Volatile(address),
                };
                session.emit(task, pc, EventKind::Flush { kind, target })?;
                task.must_fence = true;
            }
            Special::Fence(kind) => fence(session, task, pc, kind)?,
            // The trap flag that drives us must not be seen.
            Special::PushFlags => hide_trap_flag(task.tid, after.rsp)?,
            _ => {}
        }
        if self.effect.locked {
            self.record_locked(session, task, pc)?;
        } else {
            for (piece, _) in self.stores {
                session.emit_store(task, pc, self.effect.store_kind, piece)?;
            }
        }
        if self.effect.special == Special::Call {
            task.shadow.call(after.rsp, pc + u64::from(operand::length(instruction)));
        }
        Ok(())
    }

    fn record_locked(&self, session: &mut Session, task: &mut Task, pc: u64) -> Result<(), StepError> {
        if self.stores.is_empty() {
            return if task.must_fence { fence(session, task, pc, FenceKind::Locked) } else { Ok(()) };
        }
        for (piece, old) in &self.stores {
            let new = session.content(task, *piece)?;
            session.emit(task, pc, EventKind::Rmw { place: piece.place, old, new: &new })?;
        }
        task.must_fence = false;
        Ok(())
    }
}

fn name(instruction: &Instruction) -> String {
    format!("{}", instruction.opcode())
}

fn fence(session: &mut Session, task: &mut Task, pc: u64, kind: FenceKind) -> Result<(), StepError> {
    task.must_fence = false;
    session.emit(task, pc, EventKind::Fence { kind })
}

fn hide_trap_flag(tid: Tid, rsp: u64) -> Result<(), StepError> {
    const TRAP: u8 = 1;
    let mut second = [0];
    ptrace::read(tid, rsp + 1, &mut second)?;
    ptrace::write(tid, rsp + 1, &[second[0] & !TRAP])
}

fn record_loads(session: &mut Session, task: &mut Task, pc: u64, loads: &[Span]) -> Result<(), StepError> {
    if !session.options.loads {
        return Ok(());
    }
    for span in loads {
        for piece in session.pieces(task, span.address, span.len) {
            let len = u32::try_from(piece.len).expect("an operand is small");
            session.emit(task, pc, EventKind::Load { place: piece.place, len })?;
        }
    }
    Ok(())
}

/// A watched function begins with this instruction.
fn entered(session: &mut Session, task: &mut Task, r: &Registers) -> Result<(), StepError> {
    let watches = task.space.borrow_mut().code.watched(&mut session.modules, &mut session.trace, task.tid, r.rip);
    for watch in watches {
        let args = [r.rdi, r.rsi, r.rdx, r.rcx, r.r8, r.r9];
        session.emit(task, r.rip, EventKind::Call { watch, args })?;
        task.shadow.mark_watched(r.rsp, watch);
    }
    Ok(())
}

/// Drops the calls that the last instruction left; the return of a watched function is told at the return address.
fn returned(session: &mut Session, task: &mut Task, now: &Registers) -> Result<(), StepError> {
    let left = task.shadow.left_frame(now.rsp).filter(|frame| frame.return_to == now.rip);
    let watch = left.and_then(|frame| frame.watch);
    task.shadow.prune(now.rsp);
    watch.map_or(Ok(()), |watch| session.emit(task, now.rip, EventKind::Return { watch, value: now.rax }))
}

/// Steps a string instruction to its end (each trap is one iteration) and records it as a whole.
fn execute_repeated(
    session: &mut Session,
    task: &mut Task,
    instruction: &Instruction,
    start: Registers,
    effect: Effect,
) -> Result<Stepped, StepError> {
    let pc = start.rip;
    let mut run = Run::default();
    let mut reads = [Run::default(), Run::default()];
    let mut before = start;
    let mut spans = effect;
    let stepped = loop {
        ptrace::single_step(task.tid, 0)?;
        let stop = wait_for_step(task.tid)?;
        let Some((step_trap, after)) = stop_registers(task.tid, stop)? else { break Stepped::Stopped(stop) };
        if is_executed(&before, &after) {
            spans.stores.iter().for_each(|span| run.add(*span));
            spans.loads.iter().zip(&mut reads).for_each(|(span, run)| run.add(*span));
        }
        if !step_trap {
            break Stepped::Stopped(stop);
        }
        if after.rip != pc {
            break Stepped::Done;
        }
        before = after;
        spans = effect::effect(&[], instruction, &before, || extended_state(task.tid))?;
    };
    task.last_pc = pc;
    for span in reads.iter().filter_map(|run| run.span) {
        record_long_load(session, task, pc, span)?;
    }
    run.record(session, task, instruction, pc)?;
    Ok(stepped)
}

fn record_long_load(session: &mut Session, task: &mut Task, pc: u64, span: Span) -> Result<(), StepError> {
    if !session.options.loads {
        return Ok(());
    }
    for piece in session.pieces(task, span.address, span.len).into_iter().flat_map(space::cut) {
        let len = u32::try_from(piece.len).expect("cut at 4 KiB");
        session.emit(task, pc, EventKind::Load { place: piece.place, len })?;
    }
    Ok(())
}

/// What a string instruction has covered so far.
#[derive(Default)]
struct Run {
    span: Option<Span>,
    descending: bool,
}

impl Run {
    fn add(&mut self, next: Span) {
        match &mut self.span {
            None => self.span = Some(next),
            Some(span) => {
                self.descending = next.address < span.address;
                span.address = span.address.min(next.address);
                span.len += next.len;
            }
        }
    }

    fn record(
        self,
        session: &mut Session,
        task: &mut Task,
        instruction: &Instruction,
        pc: u64,
    ) -> Result<(), StepError> {
        let Some(span) = self.span else { return Ok(()) };
        let mut pieces: Vec<Piece> =
            session.pieces(task, span.address, span.len).into_iter().flat_map(space::cut).collect();
        if !pieces.is_empty() {
            session.trace.instruction_seen(&name(instruction));
        }
        if self.descending {
            pieces.reverse();
        }
        for piece in pieces {
            session.emit_store(task, pc, StoreKind::Plain, piece)?;
        }
        Ok(())
    }
}
