//! Executes the blocks of a thread: values that depend on the input get expressions, all others are the processor's.
//!
//! Source: concolic execution as in DART and SAGE (Godefroid et al., PLDI 2005, NDSS 2008), on a binary. What it can miss:
//! - **Addresses are those of the run.** A load or store whose address depends on the input uses the address of the run, except for loads
//!   from constant tables of a file ([`crate::constant`]) and from memory near an earlier load. The path keeps the address as a [`PathStepKind::Address`] step.
//! - **Instructions without semantics** in the table make their results concrete, and are counted by name.
//! - **Results of system calls** do not depend on the input, except for the bytes of the input file.
//!
//! Errors do not last: an input from a wrong path condition is run, and the run shows that it takes another path.

use iced_x86::{FlowControl, Mnemonic, OpKind, Register};
use rustc_hash::FxHashSet;

use crate::compile::{Block, Compiled, How, SYSTEM_CALL_ARGUMENTS};
use crate::constant::Constants;
use crate::eval::Evaluator;
use crate::expr::{Arena, Expr};
use crate::frame::{Byte, Concrete, FLAGS, InstructionFrame, Known, Registers, family};
use crate::logged::{Logged, resolve};
use crate::memory::Memory;
use crate::path::{Path, PathStep, PathStepKind};
use crate::semantics::execute;

/// Expressions of one run, at most.
const MOST_EXPRESSIONS: usize = 6_000_000;
/// Elements of a constant table that a load may choose from.
const MOST_ELEMENTS: u64 = 256;

/// What all threads share.
#[derive(Debug, Default)]
pub struct Shared {
    pub arena: Arena,
    pub path: Path,
    /// Where indirect jumps and calls of the program went.
    pub ways: FxHashSet<(u64, u64)>,
}

/// An address space.
#[derive(Clone, Debug, Default)]
pub struct Process {
    pub memory: Memory,
    pub constants: Constants,
    /// It only passes operations on to the program.
    pub is_driver: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub registers: Registers,
    /// A branch that was taken on a condition, until it is seen where it went.
    pending: Option<PathStep>,
    /// Where its callers go on, outermost first.
    frames: Vec<u64>,
    /// The last instruction was a return.
    returned: bool,
    /// The last instruction was an indirect jump or call, at this address.
    left: Option<u64>,
    /// The last system call.
    called: u64,
}

/// Callers that are remembered.
const MOST_FRAMES: usize = 64;

/// One thread at work.
#[derive(Debug)]
pub struct Machine<'m> {
    pub shared: &'m mut Shared,
    pub process: &'m mut Process,
    pub thread: &'m mut Thread,
}

impl Machine<'_> {
    /// Executes the instructions `from..to` of a block.
    pub fn execute(&mut self, block: &Block, from: usize, to: usize, words: &[u64]) {
        self.arrived(block.instructions.get(from).map_or(block.pc, |i| i.instruction.ip()));
        self.shared.path.counts.instructions += (to - from) as u64;
        self.run(block, from, to, words);
        if let Some(last) = block.instructions.get(to.wrapping_sub(1)) {
            match last.how {
                How::Call => {
                    self.thread.frames.push(last.instruction.next_ip());
                    // A recursion without end.
                    if self.thread.frames.len() > 8 * MOST_FRAMES {
                        self.thread.frames.drain(..4 * MOST_FRAMES);
                    }
                }
                How::Return => self.thread.returned = true,
                How::SystemCall => self.thread.called = last.instruction.ip(),
                _ => {}
            }
            if to == block.instructions.len() && block.is_indirect && !self.process.is_driver {
                self.thread.left = Some(last.instruction.ip());
            }
        }
    }

    fn run(&mut self, block: &Block, from: usize, to: usize, words: &[u64]) {
        if block.touched & self.thread.registers.live == 0 && !self.may_touch(block, words) {
            return;
        }
        for compiled in &block.instructions[from..to] {
            self.step(compiled, words);
        }
    }

    /// Whether any access of the block may reach a followed byte.
    fn may_touch(&self, block: &Block, words: &[u64]) -> bool {
        if !block.accesses {
            return false;
        }
        let memory = &self.process.memory;
        block.instructions.iter().any(|i| match i.how {
            How::String => true,
            _ => {
                resolve(i.operand, words).is_some_and(|at| memory.is_near(at, i.len.max(1) as u64))
                    || resolve(i.stack, words).is_some_and(|at| memory.may_have(at.wrapping_sub(8), 24))
            }
        })
    }

    /// Where the last branch went.
    fn arrived(&mut self, pc: u64) {
        if std::mem::take(&mut self.thread.returned)
            && let Some(at) = self.thread.frames.iter().rposition(|&frame| frame == pc)
        {
            self.thread.frames.truncate(at);
        }
        if let Some(from) = self.thread.left.take() {
            self.shared.ways.insert((from, pc));
        }
        let Some(step) = self.thread.pending.take() else { return };
        let right = match step.kind {
            PathStepKind::Branch { taken, target, next } => pc == if taken { target } else { next },
            PathStepKind::Jump { target, .. } => target == pc,
            PathStepKind::Address | PathStepKind::Driver => true,
        };
        if right {
            let kind = if self.process.is_driver { PathStepKind::Driver } else { step.kind };
            self.shared.path.push(PathStep { kind, ..step });
        } else {
            // Not what the expressions say: something was written that nobody told, or a signal came.
            self.shared.path.counts.diverged += 1;
        }
    }

    fn step(&mut self, i: &Compiled, words: &[u64]) {
        let live = self.thread.registers.live;
        let address = resolve(i.operand, words);
        let reads_memory = i.loads
            && address.is_some_and(|at| {
                self.process.memory.may_have(at, i.len as u64)
                    && (0..i.len as u64).any(|n| self.process.memory.get(at.wrapping_add(n)).is_some())
            });
        if let Some(at) = address
            && i.loads
            && self.process.memory.is_near(at, i.len as u64)
        {
            let known = Logged { operands: &i.operands, words };
            let bytes: Option<Vec<u8>> = (0..i.len).map(|n| known.content(n)).collect();
            if let Some(bytes) = bytes.filter(|_| i.len <= 64) {
                self.process.memory.loaded(at, bytes.into_iter());
            }
        }
        match i.how {
            How::Push => return self.push(i, words),
            How::Pop => return self.pop(i, words),
            How::Call => {
                self.indirect(i, address, reads_memory);
                if let Some(stack) = resolve(i.stack, words) {
                    self.process.memory.clear(stack.wrapping_sub(8), 8);
                }
                return;
            }
            How::Return => return,
            How::Leave => return self.leave(i, words),
            How::String => return self.string(i, words),
            How::SystemCall => {
                if i.reads & live != 0 && self.gives_input() {
                    let (mnemonic, pc) = (i.instruction.mnemonic(), i.instruction.ip());
                    self.shared.path.concrete(mnemonic, Concrete::SystemCall, pc);
                }
                for register in [Register::RAX, Register::RCX, Register::R11] {
                    self.thread.registers.forget(register);
                }
                return;
            }
            How::Branch => return self.branch(i, address, reads_memory),
            How::Table => {}
        }
        let table = (i.addresses & live != 0 && i.loads).then(|| self.choose(i, address)).flatten();
        if i.addresses & live != 0 && table.is_none() {
            self.pin(i, address);
        }
        if i.reads & live == 0 && !reads_memory && table.is_none() {
            self.unfollow(i, address);
            return;
        }
        let memory = match (address, table) {
            (_, Some(table)) => table,
            (Some(at), None) => self.process.memory.load(at, i.len),
            (None, None) => Vec::new(),
        };
        self.shared.path.counts.followed += 1;
        let known = Logged { operands: &i.operands, words };
        let full = self.shared.arena.len() > MOST_EXPRESSIONS;
        let mut frame = InstructionFrame {
            arena: &mut self.shared.arena,
            registers: &mut self.thread.registers,
            known: &known,
            instruction: &i.instruction,
            memory: &memory,
            stored: None,
            cut: 0,
        };
        let done = if full { Err(Concrete::Operands) } else { execute(&mut frame) };
        let (stored, cut) = (frame.stored, frame.cut);
        self.shared.path.counts.cut += cut;
        match done {
            Ok(()) => {
                if let (Some(at), Some(bytes)) = (address, stored) {
                    self.process.memory.store(at, &bytes);
                }
            }
            Err(why) => {
                if full {
                    self.shared.path.counts.too_many += 1;
                } else {
                    self.shared.path.concrete(i.instruction.mnemonic(), why, i.instruction.ip());
                }
                self.unfollow(i, address);
            }
        }
    }

    /// The kernel takes these bytes: what comes of it does not depend on them.
    pub fn taken(&mut self, address: u64, len: u64) {
        let memory = &self.process.memory;
        let len = if self.process.is_driver { 0 } else { len };
        if memory.may_have(address, len) && memory.load(address, len as usize).iter().any(Option::is_some) {
            self.shared.path.concrete(Mnemonic::Syscall, Concrete::Kernel, self.thread.called);
        }
    }

    /// Whether an argument of a system call is followed.
    fn gives_input(&self) -> bool {
        SYSTEM_CALL_ARGUMENTS.iter().any(|&register| self.thread.registers.bytes(register).iter().any(Option::is_some))
    }

    /// What the instruction writes is not followed.
    fn unfollow(&mut self, i: &Compiled, address: Option<u64>) {
        let registers = &mut self.thread.registers;
        for &(register, from, len) in &i.writes {
            if family(register) & registers.live != 0 {
                let none: [Byte; 64] = [None; 64];
                registers.set(register, from.into(), &none[..usize::from(len)]);
            }
        }
        if i.writes_flags && registers.live & FLAGS != 0 {
            registers.flags.forget();
            registers.mark(FLAGS, false);
        }
        if i.stores
            && let Some(at) = address
        {
            self.process.memory.clear(at, i.len as u64);
        }
    }

    fn push(&mut self, i: &Compiled, words: &[u64]) {
        let Some(stack) = resolve(i.stack, words) else { return };
        let len = (-i.instruction.stack_pointer_increment()) as usize;
        let mut bytes = match i.instruction.op0_kind() {
            OpKind::Register => self.thread.registers.bytes(i.instruction.op0_register()).to_vec(),
            OpKind::Memory => resolve(i.operand, words).map_or(Vec::new(), |at| self.process.memory.load(at, i.len)),
            _ => Vec::new(),
        };
        bytes.resize(len, None);
        self.process.memory.store(stack.wrapping_sub(len as u64), &bytes);
    }

    fn pop(&mut self, i: &Compiled, words: &[u64]) {
        let Some(stack) = resolve(i.stack, words) else { return };
        let len = i.instruction.stack_pointer_increment() as usize;
        let bytes = self.process.memory.load(stack, len);
        match i.instruction.op0_kind() {
            OpKind::Register => self.thread.registers.set(i.instruction.op0_register(), 0, &bytes),
            _ => {
                if let Some(at) = resolve(i.operand, words) {
                    self.process.memory.store(at, &bytes);
                }
            }
        }
    }

    fn leave(&mut self, i: &Compiled, words: &[u64]) {
        let Some(frame) = resolve(i.stack, words) else { return };
        self.thread.registers.forget(Register::RSP);
        let bytes = self.process.memory.load(frame, 8);
        self.thread.registers.set(Register::RBP, 0, &bytes);
    }

    fn string(&mut self, i: &Compiled, words: &[u64]) {
        let count = match i.count {
            Some(place) => resolve(Some(place), words).unwrap_or(0),
            None => 1,
        };
        let (source, destination) = (resolve(i.source, words), resolve(i.destination, words));
        let len = count.saturating_mul(i.len as u64).min(1 << 32);
        let memory = &mut self.process.memory;
        match (i.instruction.mnemonic(), source, destination) {
            // The direction flag is clear in all code that compilers make.
            (Mnemonic::Movsb | Mnemonic::Movsw | Mnemonic::Movsd | Mnemonic::Movsq, Some(from), Some(to)) => {
                if memory.may_have(from, len) || memory.may_have(to, len) {
                    for at in 0..len {
                        let byte = memory.get(from.wrapping_add(at));
                        memory.set(to.wrapping_add(at), byte);
                    }
                }
            }
            (Mnemonic::Stosb | Mnemonic::Stosw | Mnemonic::Stosd | Mnemonic::Stosq, _, Some(to)) => {
                let bytes = self.thread.registers.general[0];
                if bytes[..i.len].iter().all(Option::is_none) {
                    memory.clear(to, len);
                } else {
                    for at in 0..len {
                        memory.set(to.wrapping_add(at), bytes[at as usize % i.len]);
                    }
                }
            }
            (Mnemonic::Lodsb | Mnemonic::Lodsw | Mnemonic::Lodsd | Mnemonic::Lodsq, Some(from), _) if count == 1 => {
                let mut bytes = memory.load(from, i.len);
                if i.len == 4 {
                    bytes.resize(8, None);
                }
                self.thread.registers.set(Register::RAX, 0, &bytes);
            }
            (mnemonic, ..) => {
                let reads = |at: Option<u64>| at.is_some_and(|at| memory.may_have(at, len));
                if reads(source) || reads(destination) || self.thread.registers.live & 1 != 0 {
                    self.shared.path.concrete(mnemonic, Concrete::NotCovered, i.instruction.ip());
                }
                self.unfollow(i, None);
            }
        }
        for register in [Register::RSI, Register::RDI, Register::RCX] {
            let written = i.writes.iter().any(|(r, ..)| r.full_register() == register);
            if written && family(register) & self.thread.registers.live != 0 {
                self.thread.registers.forget(register);
            }
        }
    }

    fn branch(&mut self, i: &Compiled, address: Option<u64>, reads_memory: bool) {
        let instruction = &i.instruction;
        if instruction.flow_control() == FlowControl::IndirectBranch {
            return self.indirect(i, address, reads_memory);
        }
        let (mnemonic, pc) = (instruction.mnemonic(), instruction.ip());
        if !instruction.is_jcc_short_or_near() {
            // `loop` and `jrcxz`.
            if i.reads & self.thread.registers.live != 0 {
                self.shared.path.concrete(mnemonic, Concrete::NotCovered, pc);
            }
            return;
        }
        if self.thread.registers.live & FLAGS == 0 {
            return;
        }
        let arena = &mut self.shared.arena;
        let number = instruction.condition_code() as u8 - 1;
        let Some(condition) = self.thread.registers.flags.condition(arena, number) else { return };
        if arena.number(condition).is_some() {
            return;
        }
        let taken = arena.value(condition) == 1;
        let holds = if taken { condition } else { arena.not(condition) };
        let kind =
            PathStepKind::Branch { taken, target: instruction.near_branch_target(), next: instruction.next_ip() };
        let frames = self.frames();
        self.thread.pending = Some(PathStep { condition: holds, pc: instruction.ip(), kind, frames });
    }

    /// The call path, by number.
    fn frames(&mut self) -> u32 {
        let frames = &self.thread.frames;
        let inner = &frames[frames.len().saturating_sub(MOST_FRAMES)..];
        self.shared.path.call_path(inner)
    }

    /// A jump or call to where a value says.
    fn indirect(&mut self, i: &Compiled, address: Option<u64>, reads_memory: bool) {
        let i_ = &i.instruction;
        let live = self.thread.registers.live;
        let bytes = match i_.op0_kind() {
            OpKind::Register if i.reads & live != 0 => self.thread.registers.bytes(i_.op0_register()).to_vec(),
            OpKind::Memory if i.addresses & live != 0 => match self.choose(i, address) {
                Some(table) => table,
                None => return self.pin(i, address),
            },
            OpKind::Memory if reads_memory => match address {
                Some(at) => self.process.memory.load(at, i.len),
                None => return,
            },
            _ => return,
        };
        if bytes.iter().all(Option::is_none) {
            return;
        }
        // All bytes, or what it is made of is not known.
        let Some(bytes) = bytes.into_iter().collect::<Option<Vec<Expr>>>().filter(|bytes| bytes.len() == 8) else {
            self.shared.path.concrete(i_.mnemonic(), Concrete::Operands, i_.ip());
            return;
        };
        let arena = &mut self.shared.arena;
        let mut value = bytes[0];
        for &byte in &bytes[1..] {
            value = arena.concat(byte, value);
        }
        let target = arena.value(value);
        let number = arena.constant(64, target);
        let condition = arena.eq(value, number);
        if arena.number(condition).is_none() {
            let frames = self.frames();
            self.thread.pending =
                Some(PathStep { condition, pc: i_.ip(), kind: PathStepKind::Jump { target, value }, frames });
        }
    }

    /// The address of the memory operand as an expression, if it depends on the input.
    fn address(&mut self, i: &Compiled, address: Option<u64>) -> Option<Expr> {
        let concrete = address?;
        let arena = &mut self.shared.arena;
        let mut sum: Option<Expr> = None;
        let parts =
            [(i.instruction.memory_base(), 1), (i.instruction.memory_index(), i.instruction.memory_index_scale())];
        for (register, scale) in parts {
            if !register.is_gpr64() || !self.thread.registers.bytes(register).iter().any(Option::is_some) {
                continue;
            }
            // Bytes that are not followed are taken for zero here; what they add is in the rest.
            let mut value: Option<Expr> = None;
            for &byte in self.thread.registers.bytes(register) {
                let byte = byte.unwrap_or_else(|| arena.constant(8, 0));
                value = Some(match value {
                    None => byte,
                    Some(value) => arena.concat(byte, value),
                });
            }
            let scale = arena.constant(64, scale.into());
            let scaled = arena.mul(value?, scale);
            sum = Some(match sum {
                None => scaled,
                Some(sum) => arena.add(sum, scaled),
            });
        }
        let sum = sum?;
        let rest = arena.constant(64, concrete.wrapping_sub(arena.value(sum)));
        let whole = arena.add(sum, rest);
        arena.number(whole).is_none().then_some(whole)
    }

    /// A load from known memory at a place that depends on the input: what it loads, for every place that it can reach.
    fn choose(&mut self, i: &Compiled, address: Option<u64>) -> Option<Vec<Byte>> {
        let concrete = address?;
        if i.len > 8 || i.len == 0 || self.byte_at(concrete).is_none() {
            return None;
        }
        let at = self.address(i, address)?;
        let (low, high, stride) = crate::interval::range(&self.shared.arena, at, concrete);
        if high.checked_sub(low)? / stride >= MOST_ELEMENTS {
            return None;
        }
        let mut value: Option<Expr> = None;
        let mut place = low;
        let mut unknown = FxHashSet::default();
        while place <= high {
            if let Some(element) = self.element(place, i.len) {
                let arena = &mut self.shared.arena;
                value = Some(match value {
                    None => element,
                    Some(others) => {
                        let here = arena.constant(64, place);
                        let is = arena.eq(at, here);
                        arena.ite(is, element, others)
                    }
                });
            } else {
                unknown.insert(place);
            }
            place = place.checked_add(stride)?;
        }
        let value = value?;
        let is_partial = self.may_be_among(at, &unknown);
        // The element that was loaded must be among them.
        let loaded = self.element(concrete, i.len)?;
        let arena = &mut self.shared.arena;
        if arena.value(loaded) != arena.value(value) || arena.number(value).is_some() {
            return None;
        }
        self.shared.path.counts.tables += 1;
        self.shared.path.counts.partial += u64::from(is_partial);
        Some((0..i.len).map(|n| Some(arena.extract(value, (n * 8) as u8, 8))).collect())
    }

    /// Whether an address can be one of these places on this path, as far as it depends on a single byte; if on more, it may.
    fn may_be_among(&self, address: Expr, places: &FxHashSet<u64>) -> bool {
        let Shared { arena, path, .. } = &*self.shared;
        let &[only] = arena.support(address) else { return !places.is_empty() };
        let conditions = path.steps.iter().map(|step| step.condition);
        let conditions: Vec<Expr> = conditions.filter(|&condition| arena.support(condition) == [only]).collect();
        let mut input = vec![0; only as usize + 1];
        !places.is_empty()
            && (0..=u8::MAX).any(|value| {
                input[only as usize] = value;
                let mut evaluator = Evaluator::new(arena, &input);
                places.contains(&evaluator.value(address)) && conditions.iter().all(|&c| evaluator.holds(c))
            })
    }

    /// A byte of memory, as far as it is known.
    fn byte_at(&mut self, address: u64) -> Option<Expr> {
        if let Some(expr) = self.process.memory.get(address) {
            return Some(expr);
        }
        let constant = self.process.constants.read(address, 1);
        let number = constant.or_else(|| self.process.memory.known(address).map(u64::from))?;
        Some(self.shared.arena.constant(8, number))
    }

    fn element(&mut self, address: u64, len: usize) -> Option<Expr> {
        let mut value = self.byte_at(address)?;
        for at in 1..len as u64 {
            let byte = self.byte_at(address.wrapping_add(at))?;
            value = self.shared.arena.concat(byte, value);
        }
        Some(value)
    }

    /// The access happens where it happened.
    fn pin(&mut self, i: &Compiled, address: Option<u64>) {
        let Some(at) = self.address(i, address) else { return };
        let arena = &mut self.shared.arena;
        let number = arena.constant(64, arena.value(at));
        let condition = arena.eq(at, number);
        if arena.number(condition).is_none() {
            self.shared.path.pin(PathStep {
                condition,
                pc: i.instruction.ip(),
                kind: PathStepKind::Address,
                frames: 0,
            });
        }
    }
}
