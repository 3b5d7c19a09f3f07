//! Follows general registers through a block: which still hold a value that was there before, plus a constant.

use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// An unknown value; 0 stands for the number zero, so that [`Sum`] with it is a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown(pub u16);

impl Unknown {
    pub const ZERO: Unknown = Unknown(0);
}

/// A register's content: an unknown value plus a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    pub unknown: Unknown,
    pub plus: u64,
}

/// What is known about the sixteen general registers at a place in a block.
#[derive(Debug)]
pub struct Track {
    registers: [Sum; 16],
    next: u16,
    factory: InstructionInfoFactory,
}

impl Track {
    /// Nothing is known.
    pub fn new() -> Track {
        let registers = core::array::from_fn(|i| Sum { unknown: Unknown(i as u16 + 1), plus: 0 });
        Track { registers, next: 17, factory: InstructionInfoFactory::new() }
    }

    /// Of a general register of any size.
    pub fn get(&self, register: Register) -> Sum {
        self.registers[register.full_register().number()]
    }

    pub fn fresh(&mut self) -> Unknown {
        self.next += 1;
        Unknown(self.next - 1)
    }

    /// Past one instruction.
    pub fn step(&mut self, instruction: &Instruction) {
        let known = self.known_result(instruction);
        let rsp = self.get(Register::RSP);
        let mut written = [false; 16];
        for used in self.factory.info(instruction).used_registers() {
            let register = used.register().full_register();
            if register.is_gpr64() && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None) {
                written[register.number()] = true;
            }
        }
        for (number, _) in written.iter().enumerate().filter(|(_, written)| **written) {
            let unknown = self.fresh();
            self.registers[number] = Sum { unknown, plus: 0 };
        }
        if moves_stack_by_constant(instruction) {
            let plus = rsp.plus.wrapping_add_signed(instruction.stack_pointer_increment().into());
            self.registers[Register::RSP.number()] = Sum { plus, ..rsp };
        }
        if let Some((register, sum)) = known {
            self.registers[register.number()] = sum;
        }
    }

    /// The result of an instruction whose result is known, computed before it.
    fn known_result(&self, instruction: &Instruction) -> Option<(Register, Sum)> {
        let to = instruction.op0_register();
        if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register || !to.is_gpr64() {
            return None;
        }
        let add = |sum: Sum, n: u64| Sum { plus: sum.plus.wrapping_add(n), ..sum };
        let sum = match instruction.mnemonic() {
            Mnemonic::Mov if instruction.op1_kind() == OpKind::Register && instruction.op1_register().is_gpr64() => {
                self.get(instruction.op1_register())
            }
            Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
                Sum { unknown: Unknown::ZERO, plus: instruction.ip_rel_memory_address() }
            }
            Mnemonic::Lea if instruction.memory_base().is_gpr64() && instruction.memory_index() == Register::None => {
                add(self.get(instruction.memory_base()), instruction.memory_displacement64())
            }
            Mnemonic::Add if is_immediate(instruction) => add(self.get(to), instruction.immediate(1)),
            Mnemonic::Sub if is_immediate(instruction) => add(self.get(to), instruction.immediate(1).wrapping_neg()),
            Mnemonic::Inc => add(self.get(to), 1),
            Mnemonic::Dec => add(self.get(to), u64::MAX),
            _ => return None,
        };
        Some((to, sum))
    }
}

fn is_immediate(instruction: &Instruction) -> bool {
    matches!(instruction.op1_kind(), OpKind::Immediate8to64 | OpKind::Immediate32to64)
}

/// Pushes and pops, but for those whose result in `rsp` is another.
fn moves_stack_by_constant(instruction: &Instruction) -> bool {
    let pops_rsp = instruction.op_count() > 0
        && instruction.mnemonic() == Mnemonic::Pop
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == Register::RSP;
    let others =
        matches!(instruction.code(), Code::Leaveq | Code::Leavew | Code::Enterq_imm16_imm8 | Code::Enterw_imm16_imm8);
    instruction.is_stack_instruction() && !pops_rsp && !others
}
