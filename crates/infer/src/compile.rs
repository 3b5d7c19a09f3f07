//! From the bytes of a block to micro-operations, once per block.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use isa::flow::{Layout, Logged, Value};
use trace::event::CodeAddr;

use crate::op::{Address, Block, End, FlagsWritten, MicroOpKind, Noted, Op};
use crate::operands::{Access, Operands};
use crate::registers::{Part, RegisterNo, SourceRegister};

/// Compiles the block at `pc`.
pub fn compile(pc: u64, code: CodeAddr, bytes: &[u8]) -> Block {
    let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
    let instructions: Vec<Instruction> = decoder.iter().collect();
    let layout = Layout::new(&instructions);
    let mut compiler = Compiler { factory: InstructionInfoFactory::new(), ops: Vec::new(), end: End::Plain };
    let mut starts = Vec::with_capacity(instructions.len() + 1);
    for (number, instruction) in instructions.iter().enumerate() {
        let at = (instruction.ip() - pc) as u16;
        starts.push((at, compiler.ops.len() as u32));
        compiler.instruction(instruction, at, layout.values(number));
    }
    starts.push((bytes.len() as u16, compiler.ops.len() as u32));
    Block { pc, bytes: bytes.len() as u32, code, ops: compiler.ops, instructions: starts, end: compiler.end }
}

struct Compiler {
    factory: InstructionInfoFactory,
    ops: Vec<Op>,
    end: End,
}

/// The one of the values with this meaning, unless it is not to be trusted.
fn address(values: &[Value], what: Logged, more: i64) -> Option<Address> {
    let value = values.iter().find(|value| value.what == what && !value.opaque)?;
    Some(Address::new(value.place, more))
}

fn register(register: Register) -> RegisterNo {
    RegisterNo::of(register).unwrap_or(RegisterNo::NOWHERE)
}

fn whole(register: Register) -> SourceRegister {
    RegisterNo::of(register).map_or(SourceRegister::NONE, RegisterNo::whole)
}

impl Compiler {
    fn instruction(&mut self, instruction: &Instruction, at: u16, values: &[Value]) {
        if instruction.is_string_instruction() {
            return self.string(instruction, at, values);
        }
        match instruction.flow_control() {
            FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception | FlowControl::XbeginXabortXend => {}
            FlowControl::Call | FlowControl::IndirectCall if is_system_call(instruction) => {}
            _ => return self.branch(instruction, at, values),
        }
        let stack = |more: i64| address(values, Logged::Stack, more);
        match instruction.mnemonic() {
            Mnemonic::Push | Mnemonic::Pushf | Mnemonic::Pushfd | Mnemonic::Pushfq => {
                let size = instruction.stack_pointer_increment();
                self.push(instruction, at, values, stack(size.into()), size.unsigned_abs() as u16);
            }
            Mnemonic::Pop | Mnemonic::Popf | Mnemonic::Popfd | Mnemonic::Popfq => {
                self.pop(instruction, at, values, stack(0), instruction.stack_pointer_increment() as u16);
            }
            Mnemonic::Leave => {
                let (rsp, rbp) = (register(Register::RSP), register(Register::RBP));
                let Some(address) = stack(0) else { return };
                let load = Op { address, len: 8, base: rbp.whole(), ..Op::new(MicroOpKind::Load, at) };
                self.ops.push(Op { to: [RegisterNo::PASSED, RegisterNo::NOWHERE], ..load });
                self.move_register(at, rbp.whole(), rsp);
                self.move_register(at, RegisterNo::PASSED.whole(), rbp);
            }
            Mnemonic::Enter => {
                self.move_register(at, whole(Register::RSP), register(Register::RBP));
            }
            Mnemonic::Xchg => self.exchange(instruction, at, values),
            Mnemonic::Cld => self.ops.push(Op::new(MicroOpKind::Direction { backwards: false }, at)),
            Mnemonic::Std => self.ops.push(Op::new(MicroOpKind::Direction { backwards: true }, at)),
            Mnemonic::Syscall => {
                // rax is the kernel's answer, rcx and r11 are lost (SDM, SYSCALL).
                let to = [Register::RAX, Register::RCX, Register::R11].map(|to| (register(to), Part::Whole));
                let operands = Operands { to: to.to_vec(), ..Operands::default() };
                self.general(instruction, at, values, operands);
            }
            Mnemonic::Movdir64b => {
                self.load_operand(instruction, at, values);
                self.store_to(at, values, 64, &[RegisterNo::PASSED.whole()], instruction.op0_register());
            }
            Mnemonic::Maskmovq | Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu => {
                let sources: Vec<SourceRegister> =
                    [1, 2].into_iter().flat_map(|op| SourceRegister::of(instruction.op_register(op))).collect();
                let len = if instruction.mnemonic() == Mnemonic::Maskmovq { 8 } else { 16 };
                self.store_to(at, values, len, &sources, Register::RDI);
            }
            // Labels do not tell the upper parts of vector registers from the lower ones.
            Mnemonic::Vzeroupper | Mnemonic::Emms | Mnemonic::Femms => {}
            _ => {
                let info = self.factory.info(instruction);
                let operands = Operands::of(instruction, info);
                self.general(instruction, at, values, operands);
            }
        }
    }

    fn move_register(&mut self, at: u16, from: SourceRegister, to: RegisterNo) {
        let sources = [from, SourceRegister::NONE, SourceRegister::NONE];
        self.ops.push(Op { sources, to: [to, RegisterNo::NOWHERE], ..Op::new(MicroOpKind::Compute, at) });
    }

    fn general(&mut self, instruction: &Instruction, at: u16, values: &[Value], operands: Operands) {
        let mut to = operands.to;
        let access = operands.memory.and_then(|access| Some((access, address(values, Logged::Operand, 0)?)));
        if to.is_empty() && !operands.flags.any() && access.is_none_or(|(access, _)| access == Access::Read) {
            return;
        }
        let sources = self.gather(at, &operands.sources);
        let kind = match access {
            None => MicroOpKind::Compute,
            Some((Access::Read, _)) => MicroOpKind::Load,
            Some((Access::Write, _)) => MicroOpKind::Store,
            Some((Access::Both, _)) => MicroOpKind::Modify,
        };
        let mut op = Op { sources, flags: operands.flags, ..Op::new(kind, at) };
        if let Some((_, address)) = access {
            op.address = address;
            op.len = memory_len(instruction);
            op.base = whole(instruction.memory_base());
            op.index = whole(instruction.memory_index());
        }
        to.sort_by_key(|&(_, part)| part == Part::Whole);
        let fits = to.len() <= 2 && to.get(1).is_none_or(|&(_, part)| part == Part::Whole);
        let others = if fits { Vec::new() } else { std::mem::take(&mut to) };
        if let Some(&(first, part)) = to.first() {
            (op.to[0], op.part) = (first, part);
        }
        if let Some(&(second, _)) = to.get(1) {
            op.to[1] = second;
        }
        if !others.is_empty() {
            op.to[0] = RegisterNo::PASSED;
        }
        self.ops.push(op);
        for (register, part) in others {
            let sources = [RegisterNo::PASSED.whole(), SourceRegister::NONE, SourceRegister::NONE];
            let to = [register, RegisterNo::NOWHERE];
            self.ops.push(Op { sources, to, part, ..Op::new(MicroOpKind::Compute, at) });
        }
    }

    /// Brings any number of sources down to three.
    fn gather(&mut self, at: u16, sources: &[SourceRegister]) -> [SourceRegister; 3] {
        let mut left = sources;
        let mut taken = [SourceRegister::NONE; 3];
        let mut first = 0;
        loop {
            let room = 3 - first;
            let (now, later) = left.split_at(left.len().min(room));
            taken[first..first + now.len()].copy_from_slice(now);
            if later.is_empty() {
                return taken;
            }
            let to = [RegisterNo::PASSED, RegisterNo::NOWHERE];
            self.ops.push(Op { sources: taken, to, ..Op::new(MicroOpKind::Compute, at) });
            taken = [RegisterNo::PASSED.whole(), SourceRegister::NONE, SourceRegister::NONE];
            (left, first) = (later, 1);
        }
    }

    /// Loads the explicit operand into [`RegisterNo::PASSED`].
    fn load_operand(&mut self, instruction: &Instruction, at: u16, values: &[Value]) {
        let to = [RegisterNo::PASSED, RegisterNo::NOWHERE];
        let op = match address(values, Logged::Operand, 0) {
            Some(address) => Op {
                address,
                len: memory_len(instruction),
                base: whole(instruction.memory_base()),
                index: whole(instruction.memory_index()),
                ..Op::new(MicroOpKind::Load, at)
            },
            None => Op::new(MicroOpKind::Compute, at),
        };
        self.ops.push(Op { to, ..op });
    }

    fn push(&mut self, instruction: &Instruction, at: u16, values: &[Value], to: Option<Address>, len: u16) {
        let sources: Vec<SourceRegister> = if instruction.op_count() == 0 {
            vec![RegisterNo::CARRY.whole(), RegisterNo::OTHER_FLAGS.whole()]
        } else if instruction.op0_kind() == OpKind::Memory {
            self.load_operand(instruction, at, values);
            vec![RegisterNo::PASSED.whole()]
        } else if instruction.op0_kind() == OpKind::Register {
            SourceRegister::of(instruction.op0_register()).collect()
        } else {
            Vec::new()
        };
        let sources = self.gather(at, &sources);
        if let Some(address) = to {
            self.ops.push(Op { address, len, sources, base: whole(Register::RSP), ..Op::new(MicroOpKind::Store, at) });
        }
    }

    fn pop(&mut self, instruction: &Instruction, at: u16, values: &[Value], from: Option<Address>, len: u16) {
        let Some(address) = from else { return };
        let mut op = Op { address, len, base: whole(Register::RSP), ..Op::new(MicroOpKind::Load, at) };
        if instruction.op_count() == 0 {
            op.flags = FlagsWritten { carry: true, others: true, some: false };
            self.ops.push(op);
        } else if instruction.op0_kind() == OpKind::Register {
            op.to[0] = register(instruction.op0_register());
            op.part = Part::of(instruction.op0_register());
            self.ops.push(op);
        } else if let Some(address) = self::address(values, Logged::Operand, 0) {
            op.to[0] = RegisterNo::PASSED;
            self.ops.push(op);
            let sources = [RegisterNo::PASSED.whole(), SourceRegister::NONE, SourceRegister::NONE];
            let (base, index) = (whole(instruction.memory_base()), whole(instruction.memory_index()));
            self.ops.push(Op { address, len, base, index, sources, ..Op::new(MicroOpKind::Store, at) });
        }
    }

    /// A store to where a register points.
    fn store_to(&mut self, at: u16, values: &[Value], len: u16, sources: &[SourceRegister], base: Register) {
        let Some(address) = address(values, Logged::Destination, 0) else { return };
        let sources = self.gather(at, sources);
        self.ops.push(Op { address, len, sources, base: whole(base), ..Op::new(MicroOpKind::Store, at) });
    }

    fn exchange(&mut self, instruction: &Instruction, at: u16, values: &[Value]) {
        let second = instruction.op1_register();
        let mut op = Op { part: Part::of(second), ..Op::new(MicroOpKind::Exchange, at) };
        op.to[0] = register(second);
        for (slot, source) in op.sources.iter_mut().zip(SourceRegister::of(second)) {
            *slot = source;
        }
        if instruction.op0_kind() == OpKind::Memory {
            let Some(address) = address(values, Logged::Operand, 0) else { return };
            let (base, index) = (whole(instruction.memory_base()), whole(instruction.memory_index()));
            let len = memory_len(instruction);
            self.ops.push(Op { kind: MicroOpKind::ExchangeMemory, address, len, base, index, ..op });
            return;
        }
        let first = instruction.op0_register();
        if Part::of(first) == Part::Whole {
            op.to[1] = register(first);
            self.ops.push(op);
        } else {
            // Parts of registers get what both carry.
            let sources: Vec<SourceRegister> = SourceRegister::of(first).chain(SourceRegister::of(second)).collect();
            let to = vec![(register(first), Part::of(first)), (register(second), Part::of(second))];
            self.general(instruction, at, values, Operands { sources, to, ..Operands::default() });
        }
    }

    fn string(&mut self, instruction: &Instruction, at: u16, values: &[Value]) {
        use Mnemonic as M;
        for (what, noted) in
            [(Logged::Source, Noted::Source), (Logged::Count, Noted::Count), (Logged::Remaining, Noted::Remaining)]
        {
            if let Some(address) = address(values, what, 0) {
                self.ops.push(Op { address, ..Op::new(MicroOpKind::Note(noted), at) });
            }
        }
        let repeats = values.iter().any(|value| value.what == Logged::Count);
        let (kind, to_rax) = match instruction.mnemonic() {
            M::Movsb | M::Movsw | M::Movsd | M::Movsq => (MicroOpKind::Copy { repeats }, false),
            M::Stosb | M::Stosw | M::Stosd | M::Stosq => (MicroOpKind::Fill { repeats }, false),
            M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => (MicroOpKind::Fetch { repeats }, true),
            M::Scasb | M::Scasw | M::Scasd | M::Scasq => (MicroOpKind::Scan { repeats }, false),
            M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq => (MicroOpKind::Compare { repeats }, false),
            _ => return,
        };
        let mut op = Op { len: memory_len(instruction), ..Op::new(kind, at) };
        op.address = address(values, Logged::Destination, 0).unwrap_or(Address::NONE);
        let uses = |kinds: [OpKind; 2]| (0..instruction.op_count()).any(|op| kinds.contains(&instruction.op_kind(op)));
        if uses([OpKind::MemorySegRSI, OpKind::MemorySegESI]) {
            op.base = whole(Register::RSI);
        }
        if uses([OpKind::MemoryESRDI, OpKind::MemoryESEDI]) {
            op.index = whole(Register::RDI);
        }
        if repeats {
            op.sources[0] = whole(Register::RCX);
        }
        if matches!(kind, MicroOpKind::Fill { .. } | MicroOpKind::Scan { .. }) {
            op.sources[1] = whole(Register::RAX);
        }
        if to_rax {
            let to = if op.len == 8 { Part::Whole } else { Part::of(instruction.op0_register()) };
            (op.to[0], op.part) = (register(Register::RAX), to);
        }
        if matches!(kind, MicroOpKind::Scan { .. } | MicroOpKind::Compare { .. }) {
            op.flags = FlagsWritten { carry: true, others: true, some: false };
            if repeats {
                op.to[1] = register(Register::RCX);
            }
        }
        self.ops.push(op);
    }

    fn branch(&mut self, instruction: &Instruction, at: u16, values: &[Value]) {
        let operand = |compiler: &mut Self| match instruction.op0_kind() {
            OpKind::Memory => {
                compiler.load_operand(instruction, at, values);
                RegisterNo::PASSED.whole()
            }
            OpKind::Register => whole(instruction.op0_register()),
            _ => SourceRegister::NONE,
        };
        self.end = match instruction.flow_control() {
            FlowControl::ConditionalBranch => {
                let mut sources: Vec<SourceRegister> = SourceRegister::of_flags(instruction.rflags_read()).collect();
                let info = self.factory.info(instruction);
                let read = info.used_registers().iter().filter(|used| crate::operands::reads(used.access()));
                sources.extend(read.flat_map(|used| SourceRegister::of(used.register())));
                End::Branch(self.gather(at, &sources))
            }
            FlowControl::IndirectBranch => End::Indirect(operand(self)),
            FlowControl::Call | FlowControl::IndirectCall => {
                // The operand is read before the return address is written.
                if instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Memory {
                    self.load_operand(instruction, at, values);
                }
                let Some(address) = address(values, Logged::Stack, -8) else { return };
                self.ops.push(Op { address, len: 8, base: whole(Register::RSP), ..Op::new(MicroOpKind::Store, at) });
                End::Call(address)
            }
            FlowControl::Return => match address(values, Logged::Stack, 0) {
                Some(address) => End::Return(address),
                None => End::Plain,
            },
            _ => End::Plain,
        };
    }
}

fn is_system_call(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter)
}

fn memory_len(instruction: &Instruction) -> u16 {
    u16::try_from(instruction.memory_size().size()).unwrap_or(u16::MAX)
}
