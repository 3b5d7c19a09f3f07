//! Blocks of code, with everything precomputed that is the same in each execution.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use isa::flow::{Layout, Logged, Place, Wanted};

use crate::frame::{FLAGS, family};

/// A block of a process.
#[derive(Debug)]
pub struct Block {
    pub pc: u64,
    pub instructions: Vec<Compiled>,
    /// Families that are read or written anywhere in it.
    pub touched: u64,
    /// Whether any instruction accesses memory.
    pub accesses: bool,
    /// It ends with a jump or call to where a value says.
    pub is_indirect: bool,
    pub len: u64,
}

/// How an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By the table.
    Table,
    Push,
    Pop,
    /// Pushes an address that nobody follows.
    Call,
    Return,
    /// `leave`: rsp from rbp, then a pop.
    Leave,
    /// `movs`, `stos`, `lods`; others make their results concrete.
    String,
    Branch,
    SystemCall,
}

#[derive(Clone, Debug)]
pub struct Compiled {
    pub instruction: Instruction,
    pub how: How,
    /// Families that are read, for the value or for an address.
    pub reads: u64,
    /// Families that an address is made of.
    pub addresses: u64,
    /// Registers that are written, with how many bytes from which on.
    pub writes: Box<[(Register, u8, u8)]>,
    pub writes_flags: bool,
    pub operand: Option<Place>,
    pub stack: Option<Place>,
    pub source: Option<Place>,
    pub destination: Option<Place>,
    pub count: Option<Place>,
    /// Bytes of the memory operand, and whether it is read and written.
    pub len: usize,
    pub loads: bool,
    pub stores: bool,
    pub operands: Box<[(Wanted, Place)]>,
}

/// What the kernel gets from a program.
pub const SYSTEM_CALL_ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::R10, Register::R8, Register::R9];

fn reads(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::ReadWrite | OpAccess::CondRead | OpAccess::ReadCondWrite | OpAccess::CondWrite
    )
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite)
}

pub fn compile(pc: u64, bytes: &[u8]) -> Block {
    let decoded: Vec<Instruction> = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).into_iter().collect();
    let layout = Layout::with_values(&decoded);
    let mut factory = InstructionInfoFactory::new();
    let instructions: Vec<Compiled> =
        decoded.iter().enumerate().map(|(number, i)| one(&mut factory, i, &layout, number)).collect();
    let touched = instructions.iter().fold(0, |all, i| {
        all | i.reads | i.writes.iter().fold(0, |all, w| all | family(w.0)) | if i.writes_flags { FLAGS } else { 0 }
    });
    let accesses = instructions
        .iter()
        .any(|i| i.operand.is_some() || i.stack.is_some() || i.destination.is_some() || i.source.is_some());
    let last = decoded.last().map(Instruction::flow_control);
    let is_indirect = matches!(last, Some(FlowControl::IndirectBranch | FlowControl::IndirectCall));
    Block { pc, instructions, touched, accesses, is_indirect, len: bytes.len() as u64 }
}

fn one(factory: &mut InstructionInfoFactory, i: &Instruction, layout: &Layout, number: usize) -> Compiled {
    let place = |what: Logged| layout.values(number).iter().find(|value| value.what == what).map(|value| value.place);
    let how = how(i);
    let info = factory.info(i);
    let mut read = 0;
    let mut written = Vec::new();
    for used in info.used_registers() {
        let register = used.register();
        if family(register) == 0 {
            continue;
        }
        if reads(used.access()) {
            read |= family(register);
        }
        if writes(used.access()) {
            written.push(extent(i, register));
        }
    }
    if i.rflags_read() != 0 {
        read |= FLAGS;
    }
    if how == How::SystemCall {
        read |= SYSTEM_CALL_ARGUMENTS.iter().fold(0, |all, &register| all | family(register));
    }
    let mut addresses = 0;
    let (mut loads, mut stores) = (false, false);
    for op in 0..i.op_count() {
        if i.op_kind(op) == OpKind::Memory && i.mnemonic() != Mnemonic::Lea {
            addresses |= family(i.memory_base()) | family(i.memory_index());
            loads |= reads(info.op_access(op));
            stores |= writes(info.op_access(op));
        }
    }
    let size = i.memory_size();
    let len = if i.is_broadcast() { size.element_size() } else { size.size() };
    Compiled {
        instruction: *i,
        how,
        reads: read,
        addresses,
        writes: written.into(),
        writes_flags: i.rflags_modified() != 0,
        operand: place(Logged::Operand),
        stack: place(Logged::Stack),
        source: place(Logged::Source),
        destination: place(Logged::Destination),
        count: place(Logged::Count),
        len,
        loads,
        stores,
        operands: layout.operands(number).collect(),
    }
}

fn how(i: &Instruction) -> How {
    match i.mnemonic() {
        Mnemonic::Push => How::Push,
        Mnemonic::Pop => How::Pop,
        Mnemonic::Leave => How::Leave,
        Mnemonic::Syscall => How::SystemCall,
        _ if i.is_string_instruction() => How::String,
        _ => match i.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => How::Call,
            FlowControl::Return => How::Return,
            FlowControl::ConditionalBranch | FlowControl::IndirectBranch => How::Branch,
            _ => How::Table,
        },
    }
}

/// Which bytes of the family are written along with a register.
fn extent(i: &Instruction, register: Register) -> (Register, u8, u8) {
    use iced_x86::EncodingKind as E;
    if register.is_gpr32() || register.is_k() {
        return (register, 0, 8);
    }
    if register.is_vector_register() {
        let whole = matches!(i.code().encoding(), E::VEX | E::EVEX);
        return (register, 0, if whole { 64 } else { register.size() as u8 });
    }
    let from = u8::from(crate::frame::is_high(register));
    (register, from, register.size() as u8)
}
