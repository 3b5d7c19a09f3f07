//! Lets a thread execute micro-operations: labels go from registers and memory to registers and memory.
//!
//! **What follows the paper.** A load from PM is a node of Witcher's PPDG (§4.2.2), where a way through the dependence graph ends: what was
//! loaded carries the load's own label and nothing else, not even what its address came from. PM needs no shadow for the same reason.
//! A value computed, copied or stored in volatile memory carries all that it was made of, address registers
//! included, and the context of the branches around it as control.
//!
//! **What is read without having been logged** (gathers, `bt` with a far bit, `xsave`; see [`isa::flow`]) carries nothing, and
//! such stores leave memory as it was: hints through them are missed.

use crate::code::Code;
use crate::conditions::Span;
use crate::control::Control;
use crate::hints::Hints;
use crate::labels::{LabelSets, SetId, Value};
use crate::mapped::Mapped;
use crate::op::{Block, End, MicroOpKind, Noted, Op};
use crate::postdominators::PostDominators;
use crate::registers::{Part, RegisterNo, Registers, SourceRegister};
use crate::shadow::Shadow;

/// What all threads share.
#[derive(Debug, Default)]
pub struct Shared {
    pub sets: LabelSets,
    pub hints: Hints,
}

/// An address space.
#[derive(Debug, Default)]
pub struct Process {
    pub shadow: Shadow,
    pub mapped: Mapped,
    pub code: Code,
    pub post: PostDominators,
}

#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub registers: Registers,
    pub control: Control,
    /// The direction flag.
    backwards: bool,
    noted: [u64; 3],
    /// The indirect jump that it has just executed.
    jumped_from: Option<u64>,
}

/// One thread at work.
#[derive(Debug)]
pub struct Machine<'m> {
    pub shared: &'m mut Shared,
    pub process: &'m mut Process,
    pub thread: &'m mut Thread,
}

impl Machine<'_> {
    /// Executes the instructions `from..to` of a block.
    #[inline]
    pub fn execute(&mut self, block: &Block, from: usize, to: usize, words: &[u64]) {
        let (pc, end) =
            (block.pc + u64::from(block.instructions[from].0), block.pc + u64::from(block.instructions[to].0));
        self.shared.hints.counts.instructions += (to - from) as u64;
        if let Some(jump) = self.thread.jumped_from.take() {
            self.process.post.jumped(jump, pc);
        }
        let mut at = block.instructions[from].1 as usize;
        let last = block.instructions[to].1 as usize;
        let mut next = pc;
        while let Some(stop) = self.thread.control.next_end(next, end) {
            // A meeting point between instructions is one of another cut of this code.
            let reached = block.instruction_at(stop).map_or(at, |number| block.instructions[number].1 as usize);
            self.run(block, at, reached.max(at), words);
            self.thread.control.arrive(stop);
            at = reached.max(at);
            next = stop;
        }
        self.run(block, at, last, words);
        if to + 1 == block.instructions.len() {
            self.leave(block, words);
        }
    }

    fn leave(&mut self, block: &Block, words: &[u64]) {
        match block.end {
            End::Plain => {}
            End::Branch(sources) => {
                let mut value = self.thread.registers.get(sources[0]);
                for source in &sources[1..] {
                    value = self.shared.sets.join(value, self.thread.registers.get(*source));
                }
                self.branch(block, value);
            }
            End::Indirect(source) => {
                let value = self.thread.registers.get(source);
                self.branch(block, value);
                self.thread.jumped_from = Some(block.last_pc());
            }
            End::Call(address) => self.thread.control.call(address.resolve(words)),
            End::Return(address) => self.thread.control.ret(address.resolve(words)),
        }
    }

    #[inline]
    fn branch(&mut self, block: &Block, value: Value) {
        if value.is_empty() {
            return;
        }
        let labels = self.shared.sets.union(value.data(), value.control());
        let Process { code, post, .. } = &mut *self.process;
        self.thread.control.branch(&mut self.shared.sets, labels, || post.of(block.last_pc(), code));
    }

    fn run(&mut self, block: &Block, from: usize, to: usize, words: &[u64]) {
        let context = Value::new(SetId::EMPTY, self.thread.control.context());
        for op in &block.ops[from..to] {
            match op.kind {
                MicroOpKind::Compute => {
                    let value = self.sources(op, context);
                    self.put(op, value);
                }
                MicroOpKind::Load => {
                    let value = self.load(op, op.address.resolve(words), block, context);
                    self.put(op, value);
                }
                MicroOpKind::Store => {
                    let value = self.sources(op, context);
                    self.store(op, op.address.resolve(words), block, value);
                    self.put(op, value);
                }
                MicroOpKind::Modify => {
                    let address = op.address.resolve(words);
                    let value = self.load(op, address, block, context);
                    self.store(op, address, block, value);
                    self.put(op, value);
                }
                MicroOpKind::Exchange => {
                    let (a, b) = (op.to[0], op.to[1]);
                    let first = self.register(a.whole(), context);
                    let second = self.register(b.whole(), context);
                    self.thread.registers.set(a, second);
                    self.thread.registers.set(b, first);
                }
                MicroOpKind::ExchangeMemory => {
                    let address = op.address.resolve(words);
                    let stored = self.sources(op, context);
                    let none = Op { sources: [SourceRegister::NONE; 3], ..*op };
                    let loaded = self.load(&none, address, block, context);
                    self.store(op, address, block, stored);
                    self.put(op, loaded);
                }
                MicroOpKind::Note(what) => self.thread.noted[what as usize] = op.address.resolve(words),
                MicroOpKind::Direction { backwards } => self.thread.backwards = backwards,
                MicroOpKind::Copy { .. }
                | MicroOpKind::Fill { .. }
                | MicroOpKind::Fetch { .. }
                | MicroOpKind::Scan { .. }
                | MicroOpKind::Compare { .. } => {
                    self.string(op, op.address.resolve(words), block, context);
                }
            }
        }
    }

    #[inline]
    fn register(&mut self, slot: SourceRegister, context: Value) -> Value {
        let value = self.thread.registers.get(slot);
        self.shared.sets.join(value, context)
    }

    /// What the sources of an operation carry, and the context.
    #[inline]
    fn sources(&mut self, op: &Op, context: Value) -> Value {
        let registers = &self.thread.registers;
        let [a, b, c] = op.sources.map(|slot| registers.get(slot));
        if a.word() | b.word() | c.word() | context.word() == 0 {
            return Value::EMPTY;
        }
        let sets = &mut self.shared.sets;
        let both = sets.join(a, b);
        let all = sets.join(both, c);
        sets.join(all, context)
    }

    /// What the registers that form the address carry.
    #[inline]
    fn address(&mut self, op: &Op) -> Value {
        let (base, index) = (self.thread.registers.get(op.base), self.thread.registers.get(op.index));
        self.shared.sets.join(base, index)
    }

    #[inline]
    fn load(&mut self, op: &Op, address: u64, block: &Block, context: Value) -> Value {
        let path = self.address(op);
        let len = u64::from(op.len);
        if let Some(span) = self.process.mapped.find(address, len) {
            let loaded = self.load_pm(op, span, block, path, context);
            if op.is_move() {
                return loaded;
            }
            let others = self.sources(op, context);
            return self.shared.sets.join(loaded, others);
        }
        let memory = self.process.shadow.load(&mut self.shared.sets, address, len);
        let others = self.sources(op, context);
        if memory.word() | path.word() == 0 {
            return others;
        }
        let value = self.shared.sets.join(memory, path);
        self.shared.sets.join(value, others)
    }

    fn load_pm(&mut self, op: &Op, span: Span, block: &Block, path: Value, context: Value) -> Value {
        let control = self.shared.sets.union(path.control(), context.control());
        let label = self.shared.hints.loaded(&mut self.shared.sets, span, block.code_at(op.at), control);
        Value::new(label, SetId::EMPTY)
    }

    #[inline]
    fn store(&mut self, op: &Op, address: u64, block: &Block, value: Value) {
        let path = self.address(op);
        let all = self.shared.sets.join(value, path);
        let len = u64::from(op.len);
        match self.process.mapped.find(address, len) {
            Some(span) => {
                let Shared { sets, hints } = &mut *self.shared;
                hints.stored(sets, span, block.code_at(op.at), all.data(), all.control());
            }
            None => self.process.shadow.store(address, len, all),
        }
    }

    /// The result goes to the destinations and flags.
    #[inline]
    fn put(&mut self, op: &Op, value: Value) {
        let registers = &mut self.thread.registers;
        if op.part == Part::Whole {
            registers.set(op.to[0], value);
        } else {
            let whole = self.shared.sets.join(registers.get(op.to[0].whole()), value);
            registers.set_part(op.to[0], op.part, value, whole);
        }
        registers.set(op.to[1], value);
        if op.flags.carry {
            registers.set(RegisterNo::CARRY, value);
        }
        if op.flags.others {
            registers.set(RegisterNo::OTHER_FLAGS, value);
        } else if op.flags.some {
            let both = self.shared.sets.join(registers.get(RegisterNo::OTHER_FLAGS.whole()), value);
            registers.set(RegisterNo::OTHER_FLAGS, both);
        }
    }

    /// A string instruction. What it leaves in `rsi`, `rdi` and `rcx` is taken to carry what was there.
    fn string(&mut self, op: &Op, destination: u64, block: &Block, context: Value) {
        let (repeats, compares) = match op.kind {
            MicroOpKind::Copy { repeats } | MicroOpKind::Fill { repeats } | MicroOpKind::Fetch { repeats } => {
                (repeats, false)
            }
            MicroOpKind::Scan { repeats } | MicroOpKind::Compare { repeats } => (repeats, true),
            _ => return,
        };
        let count = match (repeats, compares) {
            (false, _) => 1,
            (true, false) => self.thread.noted[Noted::Count as usize],
            (true, true) => {
                self.thread.noted[Noted::Count as usize].wrapping_sub(self.thread.noted[Noted::Remaining as usize])
            }
        };
        let size = u64::from(op.len);
        let len = count.wrapping_mul(size);
        // The lowest address of the strings: backwards, they end where the registers point.
        let low = |address: u64| {
            if self.thread.backwards { address.wrapping_sub(len.wrapping_sub(size)) } else { address }
        };
        let (from, to) = (low(self.thread.noted[Noted::Source as usize]), low(destination));
        let plain = self.sources(op, context);
        if len == 0 {
            if compares {
                self.put(op, plain);
            }
            return;
        }
        let (source, target) = (Op { index: SourceRegister::NONE, ..*op }, Op { base: SourceRegister::NONE, ..*op });
        match op.kind {
            MicroOpKind::Copy { .. } => self.copy(&source, &target, (from, to, len), block, plain, context),
            MicroOpKind::Fill { .. } => self.store_range(&target, to, len, block, plain),
            MicroOpKind::Fetch { .. } => {
                let value = self.load_range(&source, from, len, block, context);
                let value = self.shared.sets.join(value, plain);
                self.put(op, value);
            }
            MicroOpKind::Scan { .. } | MicroOpKind::Compare { .. } => {
                let mut value = self.load_range(&target, to, len, block, context);
                if matches!(op.kind, MicroOpKind::Compare { .. }) {
                    let other = self.load_range(&source, from, len, block, context);
                    value = self.shared.sets.join(value, other);
                }
                let value = self.shared.sets.join(value, plain);
                self.put(op, value);
            }
            _ => {}
        }
    }

    fn copy(
        &mut self,
        source: &Op,
        target: &Op,
        (from, to, len): (u64, u64, u64),
        block: &Block,
        plain: Value,
        context: Value,
    ) {
        let in_pm = |address| self.process.mapped.find(address, len).is_some();
        if in_pm(from) || in_pm(to) {
            let value = self.load_range(source, from, len, block, context);
            let value = self.shared.sets.join(value, plain);
            self.store_range(target, to, len, block, value);
            return;
        }
        let (here, there) = (self.address(source), self.address(target));
        let path = self.shared.sets.join(here, there);
        let more = self.shared.sets.join(path, plain);
        let Shared { sets, .. } = &mut *self.shared;
        self.process.shadow.copy(sets, from, to, len, self.thread.backwards, more);
    }

    fn load_range(&mut self, op: &Op, address: u64, len: u64, block: &Block, context: Value) -> Value {
        let path = self.address(op);
        match self.process.mapped.find(address, len) {
            Some(span) => self.load_pm(op, span, block, path, context),
            None => {
                let memory = self.process.shadow.load(&mut self.shared.sets, address, len);
                self.shared.sets.join(memory, path)
            }
        }
    }

    fn store_range(&mut self, op: &Op, address: u64, len: u64, block: &Block, value: Value) {
        let path = self.address(op);
        let all = self.shared.sets.join(value, path);
        match self.process.mapped.find(address, len) {
            Some(span) => {
                let Shared { sets, hints } = &mut *self.shared;
                hints.stored(sets, span, block.code_at(op.at), all.data(), all.control());
            }
            None => self.process.shadow.store(address, len, all),
        }
    }
}
