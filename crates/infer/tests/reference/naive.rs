//! Labels as sets, memory as a map of bytes, regions as a plain list, post-dominators by taking instructions out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{Instruction, Mnemonic as M, OpKind, Register};
use infer::{ConditionRule, Span};
use isa::flow::{Logged, Value as Logging};
use trace::event::PoolId;

use crate::program::{Ends, Program};

pub const POOL_AT: u64 = 0x2000_0000_0000;
pub const POOL_BYTES: u64 = 4096;

type Labels = BTreeSet<(Span, u64)>;

/// Data and control.
#[derive(Clone, Debug, Default, PartialEq)]
struct Value {
    data: Labels,
    control: Labels,
}

impl Value {
    fn with(mut self, other: &Value) -> Value {
        self.data.extend(other.data.iter().copied());
        self.control.extend(other.control.iter().copied());
        self
    }

    fn all(&self) -> Labels {
        self.data.union(&self.control).copied().collect()
    }
}

struct Region {
    labels: Labels,
    /// None: to the end of the call.
    until: Option<u64>,
    depth: usize,
}

pub struct Naive<'p> {
    program: &'p Program,
    /// (register, part): parts are 0 the whole, 1 and 2 the lowest bytes; flags are registers 100 and 101.
    registers: HashMap<(usize, u8), Value>,
    memory: HashMap<u64, Value>,
    regions: Vec<Region>,
    depth: usize,
    orders: BTreeSet<(ConditionRule, Span, Span)>,
    guardians: BTreeSet<Span>,
    stored: BTreeSet<u64>,
    meets: HashMap<u64, Option<u64>>,
}

const CARRY: usize = 100;
const OTHERS: usize = 101;

impl<'p> Naive<'p> {
    pub fn new(program: &'p Program) -> Self {
        let (registers, memory, regions, orders, guardians, stored, meets) = Default::default();
        Naive { program, registers, memory, regions, depth: 0, orders, guardians, stored, meets }
    }

    pub fn conditions(&self) -> (Vec<(ConditionRule, Span, Span)>, Vec<Span>) {
        let stored = |span: &Span| (span.offset / 8..span.end().div_ceil(8)).any(|word| self.stored.contains(&word));
        let orders = self.orders.iter().filter(|(_, first, second)| stored(first) && stored(second));
        (orders.copied().collect(), self.guardians.iter().filter(|span| stored(span)).copied().collect())
    }

    pub fn executed(&mut self, number: usize, words: &[u64]) {
        let program = self.program;
        let block = &program.blocks[number];
        for (at, instruction) in block.instructions.iter().enumerate() {
            let pc = instruction.ip();
            let ends = |region: &Region| region.depth == self.depth && region.until == Some(pc);
            if let Some(first) = self.regions.iter().position(ends) {
                self.regions.truncate(first);
            }
            self.instruction(instruction, block.layout.values(at), words);
        }
        let last = block.instructions.last().unwrap();
        match block.ends {
            Ends::Branches(..) => {
                let carry = self.read_flag(CARRY);
                let others = self.read_flag(OTHERS);
                let value = match last.mnemonic() {
                    M::Jb => carry,
                    _ => others,
                };
                let until = self.meets.get(&last.ip()).copied().unwrap_or_else(|| self.meet(last.ip()));
                self.meets.insert(last.ip(), until);
                self.regions.push(Region { labels: value.all(), until, depth: self.depth });
            }
            Ends::Calls(_) => self.depth += 1,
            // A function that was not called ends all the same.
            Ends::Returns if self.depth == 0 => self.regions.clear(),
            Ends::Returns => {
                self.depth -= 1;
                let depth = self.depth;
                self.regions.retain(|region| region.depth <= depth);
            }
            Ends::Goes(_) => {}
        }
    }

    fn context(&self) -> Value {
        let control = self.regions.iter().flat_map(|region| region.labels.iter().copied()).collect();
        Value { data: Labels::new(), control }
    }

    fn instruction(&mut self, i: &Instruction, values: &[Logging], words: &[u64]) {
        let context = self.context();
        let address = |what: Logged| {
            values.iter().find(|value| value.what == what).and_then(|value| value.resolve(words)).unwrap_or(0)
        };
        let operand = || address(Logged::Operand);
        let pc = i.ip();
        let is_memory = |op: u32| i.op_kind(op) == OpKind::Memory;
        let len = i.memory_size().size() as u64;
        let (first, second) = (i.op0_register(), if i.op_count() > 1 { i.op1_register() } else { Register::None });
        let base = self.read(i.memory_base()).with(&self.read(i.memory_index()));
        match i.mnemonic() {
            M::Nop | M::Jmp | M::Je | M::Jb | M::Jle => {}
            M::Ret => {}
            M::Call => self.store(pc, address(Logged::Stack) - 8, 8, context),
            M::Push => {
                let value = self.read(first).with(&context);
                self.store(pc, address(Logged::Stack) - 8, 8, value);
            }
            M::Pop => {
                let value = self.load(pc, address(Logged::Stack), 8, &base, &context, true);
                self.write(first, value);
            }
            M::Mov | M::Movzx | M::Movups if is_memory(1) => {
                let value = self.load(pc, operand(), len, &base, &context, true);
                self.write(first, value);
            }
            M::Mov | M::Movups if is_memory(0) => {
                let value = self.read(second).with(&context).with(&base);
                self.store(pc, operand(), len, value);
            }
            M::Mov | M::Movzx | M::Movups => {
                let value = self.read(second).with(&context);
                self.write(first, value);
            }
            M::Sete => {
                let value = self.read_flag(OTHERS).with(&context);
                self.write(first, value);
            }
            M::Lea => {
                let value = base.with(&context);
                self.write(first, value);
            }
            M::Xor | M::Sub | M::Pxor if first == second => {
                self.write(first, context.clone());
                if i.mnemonic() != M::Pxor {
                    self.write_flags(true, context);
                }
            }
            M::Xor | M::Add | M::Adc | M::Paddd | M::Pxor if !is_memory(0) && !is_memory(1) => {
                let mut value = self.read(first).with(&self.read(second)).with(&context);
                if i.mnemonic() == M::Adc {
                    value = value.with(&self.read_flag(CARRY));
                }
                self.write(first, value.clone());
                if !matches!(i.mnemonic(), M::Paddd | M::Pxor) {
                    self.write_flags(true, value);
                }
            }
            M::Add if is_memory(1) => {
                let value = self.load(pc, operand(), len, &base, &context, false).with(&self.read(first));
                self.write(first, value.clone());
                self.write_flags(true, value);
            }
            M::Add => {
                let value = self.load(pc, operand(), len, &base, &context, false).with(&self.read(second));
                self.store(pc, operand(), len, value.clone().with(&base));
                self.write_flags(true, value);
            }
            M::Cmp => {
                let other = if is_memory(0) { second } else { first };
                let value = self.load(pc, operand(), len, &base, &context, false).with(&self.read(other));
                self.write_flags(true, value);
            }
            M::Test => {
                let value = self.read(first).with(&self.read(second)).with(&context);
                self.write_flags(true, value);
            }
            M::Cmove => {
                let value = self.read(first).with(&self.read(second)).with(&self.read_flag(OTHERS)).with(&context);
                self.write(first, value);
            }
            M::Inc => {
                let value = self.read(first).with(&context);
                self.write(first, value.clone());
                self.write_flags(false, value);
            }
            M::Mul => {
                let value = self.read(first).with(&self.read(Register::RAX)).with(&context);
                self.write(Register::RAX, value.clone());
                self.write(Register::RDX, value.clone());
                self.write_flags(true, value);
            }
            M::Xchg if is_memory(0) => {
                let stored = self.read(second).with(&context).with(&base);
                let loaded = self.load(pc, operand(), len, &base, &context, true);
                self.store(pc, operand(), len, stored);
                self.write(second, loaded);
            }
            M::Xchg => {
                let (a, b) = (self.read(first).with(&context), self.read(second).with(&context));
                self.write(first, b);
                self.write(second, a);
            }
            M::Movsb => {
                let (from, to, count) = (address(Logged::Source), address(Logged::Destination), address(Logged::Count));
                let plain = self.read(Register::RCX).with(&context);
                self.copy(pc, (from, to, count), plain);
            }
            other => panic!("the programs have no {other:?}"),
        }
    }

    fn copy(&mut self, pc: u64, (from, to, count): (u64, u64, u64), plain: Value) {
        if count == 0 {
            return;
        }
        let (rsi, rdi, context) = (self.read(Register::RSI), self.read(Register::RDI), self.context());
        if is_pm(from) || is_pm(to) {
            let value = if is_pm(from) {
                self.load(pc, from, count, &rsi, &context, true)
            } else {
                self.bytes(from, count).with(&rsi)
            };
            self.store(pc, to, count, value.with(&plain).with(&rdi));
            return;
        }
        for i in 0..count {
            let byte = self.memory.get(&(from + i)).cloned().unwrap_or_default();
            self.memory.insert(to + i, byte.with(&plain).with(&rsi).with(&rdi));
        }
    }

    fn bytes(&self, at: u64, len: u64) -> Value {
        (at..at + len).filter_map(|byte| self.memory.get(&byte)).fold(Value::default(), Value::with)
    }

    fn load(&mut self, pc: u64, at: u64, len: u64, base: &Value, context: &Value, moves: bool) -> Value {
        if !is_pm(at) {
            return self.bytes(at, len).with(base).with(context);
        }
        let span = Span { pool: PoolId(0), offset: at - POOL_AT, len: len as u32 };
        for &(guardian, _) in base.control.iter().chain(&context.control) {
            if !guardian.overlaps(span) {
                self.orders.insert((ConditionRule::Po3, span, guardian));
                self.guardians.insert(guardian);
            }
        }
        let loaded = Value { data: Labels::from([(span, pc)]), control: Labels::new() };
        if moves { loaded } else { loaded.with(context) }
    }

    fn store(&mut self, _pc: u64, at: u64, len: u64, value: Value) {
        if !is_pm(at) {
            self.memory.extend((at..at + len).map(|byte| (byte, value.clone())));
            return;
        }
        let span = Span { pool: PoolId(0), offset: at - POOL_AT, len: len as u32 };
        self.stored.extend(span.offset / 8..span.end().div_ceil(8));
        for (rule, labels) in [(ConditionRule::Po1, &value.data), (ConditionRule::Po2, &value.control)] {
            for &(first, _) in labels.iter().filter(|(first, _)| !first.overlaps(span)) {
                self.orders.insert((rule, first, span));
            }
        }
    }

    fn part(register: Register) -> u8 {
        match register {
            Register::AH => 2,
            _ if register.is_gpr8() => 1,
            _ => 0,
        }
    }

    fn read(&self, register: Register) -> Value {
        let key = (register.full_register() as usize, Self::part(register));
        self.registers.get(&key).cloned().unwrap_or_default()
    }

    fn write(&mut self, register: Register, value: Value) {
        let full = register.full_register() as usize;
        match Self::part(register) {
            0 => self.registers.extend((0..3).map(|part| ((full, part), value.clone()))),
            part => {
                let whole = self.registers.get(&(full, 0)).cloned().unwrap_or_default().with(&value);
                self.registers.insert((full, 0), whole);
                self.registers.insert((full, part), value);
            }
        }
    }

    fn read_flag(&self, flag: usize) -> Value {
        self.registers.get(&(flag, 0)).cloned().unwrap_or_default()
    }

    fn write_flags(&mut self, carry: bool, value: Value) {
        if carry {
            self.registers.insert((CARRY, 0), value.clone());
        }
        self.registers.insert((OTHERS, 0), value);
    }

    /// The first instruction on all ways from the branch out of the function.
    fn meet(&self, branch: u64) -> Option<u64> {
        let mut ways: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for block in &self.program.blocks {
            for i in &block.instructions {
                ways.insert(i.ip(), vec![i.next_ip()]);
            }
            let last = block.instructions.last().unwrap();
            let start = |number: usize| self.program.blocks[number].pc;
            let to = match block.ends {
                Ends::Goes(to) => vec![start(to)],
                Ends::Branches(to, next) => vec![start(to), start(next)],
                Ends::Calls(next) => vec![start(next)],
                Ends::Returns => vec![],
            };
            ways.insert(last.ip(), to);
        }
        let leaves = |from: u64, without: Option<u64>| {
            let (mut seen, mut stack) = (BTreeSet::new(), vec![from]);
            while let Some(at) = stack.pop() {
                if Some(at) == without || !seen.insert(at) {
                    continue;
                }
                if ways[&at].is_empty() {
                    return true;
                }
                stack.extend(&ways[&at]);
            }
            false
        };
        if !leaves(branch, None) {
            return None;
        }
        let on_all = |from: u64| -> Vec<u64> {
            ways.keys().copied().filter(|&at| at != from && !leaves(from, Some(at))).collect()
        };
        let all = on_all(branch);
        // From the first one on, all the others still lie ahead.
        all.iter().copied().find(|&at| all.iter().all(|&other| other == at || on_all(at).contains(&other)))
    }
}

fn is_pm(at: u64) -> bool {
    (POOL_AT..POOL_AT + POOL_BYTES).contains(&at)
}
