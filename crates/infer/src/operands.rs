//! What an instruction reads and writes beside memory, as far as labels go.

use iced_x86::{CpuidFeature, Instruction, InstructionInfo, Mnemonic, OpAccess, OpKind, Register};

use crate::op::FlagsWritten;
use crate::registers::{OTHERS, Part, RegisterNo, SourceRegister};

/// How memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    Both,
}

/// Registers and flags of an instruction. Those that only form an address are not among the sources.
#[derive(Clone, Debug, Default)]
pub struct Operands {
    pub sources: Vec<SourceRegister>,
    pub to: Vec<(RegisterNo, Part)>,
    pub flags: FlagsWritten,
    /// Of the explicit memory operand.
    pub memory: Option<Access>,
}

impl Operands {
    pub fn of(instruction: &Instruction, info: &InstructionInfo) -> Self {
        let mut operands = Operands { flags: flags_written(instruction), ..Operands::default() };
        operands.memory = memory_access(instruction, info);
        for used in info.used_registers() {
            let Some(register) = RegisterNo::of(used.register()) else { continue };
            let merges = matches!(used.access(), OpAccess::CondWrite | OpAccess::ReadCondWrite) || register.is_shared();
            if writes(used.access()) {
                let to = (register, Part::of(used.register()));
                if !operands.to.contains(&to) {
                    operands.to.push(to);
                }
                if merges {
                    operands.sources.extend(SourceRegister::of(used.register()));
                }
            }
        }
        if !is_constant(instruction) {
            operands.add_reads(instruction, info);
        }
        if uses_x87(instruction) {
            let x87 = RegisterNo::of(Register::ST0).expect("ST0 is kept");
            operands.sources.push(x87.whole());
            operands.to.push((x87, Part::Whole));
        }
        operands.sources.sort_unstable();
        operands.sources.dedup();
        operands
    }

    fn add_reads(&mut self, instruction: &Instruction, info: &InstructionInfo) {
        if is_same_register(instruction) && instruction.mnemonic() == Mnemonic::Sbb {
            self.sources.push(RegisterNo::CARRY.whole());
            return;
        }
        let explicit = || {
            let registers = (0..instruction.op_count()).filter(|&op| instruction.op_kind(op) == OpKind::Register);
            registers.filter(|&op| reads(info.op_access(op))).map(|op| instruction.op_register(op))
        };
        // An address that is not accessed (lea) is data.
        let forms_address = |register: Register| {
            let full = register.full_register();
            self.memory.is_some()
                && [instruction.memory_base(), instruction.memory_index()]
                    .iter()
                    .any(|part| part.full_register() == full)
        };
        let mut found: Vec<SourceRegister> = explicit().flat_map(SourceRegister::of).collect();
        for used in info.used_registers() {
            let register = used.register();
            let is_explicit = explicit().any(|other| other.full_register() == register.full_register());
            if reads(used.access())
                && !is_explicit
                && (!forms_address(register) || is_accumulator(instruction, register))
            {
                found.extend(SourceRegister::of(register));
            }
        }
        self.sources.extend(found);
        self.sources.extend(SourceRegister::of_flags(instruction.rflags_read()));
    }
}

pub fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn memory_access(instruction: &Instruction, info: &InstructionInfo) -> Option<Access> {
    let op = (0..instruction.op_count()).find(|&op| instruction.op_kind(op) == OpKind::Memory)?;
    let access = info.op_access(op);
    match (reads(access), writes(access)) {
        (true, true) => Some(Access::Both),
        (true, false) => Some(Access::Read),
        (false, true) => Some(Access::Write),
        (false, false) => None,
    }
}

fn flags_written(instruction: &Instruction) -> FlagsWritten {
    let modified = instruction.rflags_modified();
    let others = modified & iced_x86::RflagsBits::ZF != 0;
    FlagsWritten { carry: modified & iced_x86::RflagsBits::CF != 0, others, some: !others && modified & OTHERS != 0 }
}

/// Are both sources the same register?
fn is_same_register(instruction: &Instruction) -> bool {
    let count = instruction.op_count();
    let register = |op: u32| (instruction.op_kind(op) == OpKind::Register).then(|| instruction.op_register(op));
    match count {
        2 => register(0).is_some() && register(0) == register(1),
        3 => register(1).is_some() && register(1) == register(2),
        _ => false,
    }
}

/// The result does not depend on the operands (SDM's zeroing idioms and their kin).
fn is_constant(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let immediate = || {
        let last = instruction.op_count().checked_sub(1)?;
        instruction.try_immediate(last).ok()
    };
    match instruction.mnemonic() {
        M::Xor
        | M::Sub
        | M::Pxor
        | M::Xorps
        | M::Xorpd
        | M::Psubb
        | M::Psubw
        | M::Psubd
        | M::Psubq
        | M::Pcmpeqb
        | M::Pcmpeqw
        | M::Pcmpeqd
        | M::Pcmpeqq
        | M::Pcmpgtb
        | M::Pcmpgtw
        | M::Pcmpgtd
        | M::Pcmpgtq
        | M::Kxorb
        | M::Kxorw
        | M::Kxord
        | M::Kxorq
        | M::Vpxor
        | M::Vpxord
        | M::Vpxorq
        | M::Vxorps
        | M::Vxorpd
        | M::Vpsubb
        | M::Vpsubw
        | M::Vpsubd
        | M::Vpsubq
        | M::Vpcmpeqb
        | M::Vpcmpeqw
        | M::Vpcmpeqd
        | M::Vpcmpeqq => is_same_register(instruction),
        M::And => instruction.op0_kind() == OpKind::Register && immediate() == Some(0),
        M::Or => instruction.op0_kind() == OpKind::Register && is_all_ones(instruction, immediate()),
        _ => false,
    }
}

fn is_all_ones(instruction: &Instruction, immediate: Option<u64>) -> bool {
    let bits = instruction.op0_register().size() * 8;
    immediate.is_some_and(|value| value << (64 - bits) == u64::MAX << (64 - bits))
}

/// Registers that these read without naming them, whatever else they are used for.
fn is_accumulator(instruction: &Instruction, register: Register) -> bool {
    use Mnemonic as M;
    let accumulator = matches!(register.full_register(), Register::RAX | Register::RDX);
    accumulator
        && matches!(
            instruction.mnemonic(),
            M::Mul | M::Imul | M::Div | M::Idiv | M::Cmpxchg | M::Cmpxchg8b | M::Cmpxchg16b | M::Mulx
        )
}

fn uses_x87(instruction: &Instruction) -> bool {
    let fpu =
        |feature: &CpuidFeature| matches!(feature, CpuidFeature::FPU | CpuidFeature::FPU287 | CpuidFeature::FPU387);
    instruction.cpuid_features().iter().any(fpu)
}
