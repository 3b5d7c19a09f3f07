//! Values mode: the operands that flow mode logs beside addresses, for whoever computes what instructions compute.
//!
//! Moves have at most what they load: where a value came from is known, and what was not followed stays unfollowed. Branches, whose way is
//! seen, have none, nor have instructions that only touch memory as a whole. Everything that computes has its register operands and what it reads from
//! memory, as they are before it runs.

use iced_x86::{ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// A value of an operand, before the instruction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wanted {
    /// A 64-bit general register.
    Register(Register),
    /// A vector register: two, four or eight words.
    Vector(Register),
    /// An opmask register.
    Mask(Register),
    /// What the memory operand has: a word per eight bytes, the last filled with zeros.
    Content { bytes: u8 },
    /// Whether the condition with this number (that of `setcc`'s opcode) holds.
    Condition(u8),
}

impl Wanted {
    pub fn words(self) -> usize {
        match self {
            Wanted::Register(_) | Wanted::Mask(_) | Wanted::Condition(_) => 1,
            Wanted::Vector(register) => register.size() / 8,
            Wanted::Content { bytes } => usize::from(bytes).div_ceil(8),
        }
    }
}

/// The most that one instruction wants.
const MOST: usize = 8;

/// What one instruction wants, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedList {
    list: [Option<Wanted>; MOST],
}

impl WantedList {
    pub fn iter(&self) -> impl Iterator<Item = Wanted> + '_ {
        self.list.iter().flatten().copied()
    }

    fn push(&mut self, wanted: Wanted) {
        if !self.list.contains(&Some(wanted))
            && let Some(free) = self.list.iter_mut().find(|slot| slot.is_none())
        {
            *free = Some(wanted);
        }
    }
}

/// The number of carry's condition.
pub const CARRY: u8 = 2;

/// What `instruction` wants.
pub fn wanted(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> WantedList {
    use Mnemonic as M;
    let mut list = WantedList::default();
    if instruction.has_op_mask() {
        list.push(Wanted::Mask(instruction.op_mask()));
    }
    if instruction.condition_code() != ConditionCode::None && !instruction.is_jcc_short_or_near() {
        list.push(Wanted::Condition(instruction.condition_code() as u8 - 1));
    }
    match instruction.mnemonic() {
        M::Adc | M::Sbb | M::Rcl | M::Rcr | M::Adcx | M::Cmc => list.push(Wanted::Condition(CARRY)),
        M::Mul | M::Imul if instruction.op_count() == 1 => list.push(Wanted::Register(Register::RAX)),
        M::Div | M::Idiv => {
            list.push(Wanted::Register(Register::RAX));
            list.push(Wanted::Register(Register::RDX));
        }
        M::Cbw | M::Cwde | M::Cdqe | M::Cwd | M::Cdq | M::Cqo | M::Cmpxchg | M::Lahf | M::Sahf => {
            list.push(Wanted::Register(Register::RAX));
        }
        M::Mulx => list.push(Wanted::Register(Register::RDX)),
        M::Lea => {
            for register in [instruction.memory_base(), instruction.memory_index()] {
                if register.is_gpr32() || register.is_gpr64() {
                    list.push(Wanted::Register(register.full_register()));
                }
            }
            return list;
        }
        _ => {}
    }
    if instruction.is_string_instruction() || instruction.is_vsib() {
        return list;
    }
    let moves = moves(instruction);
    if moves && !loads(instruction) {
        return list;
    }
    let info = factory.info(instruction);
    for op in 0..instruction.op_count() {
        let read = matches!(
            info.op_access(op),
            OpAccess::Read | OpAccess::ReadWrite | OpAccess::CondRead | OpAccess::ReadCondWrite | OpAccess::CondWrite
        );
        // A merging mask keeps parts of the destination.
        let merged = op == 0 && instruction.has_op_mask() && instruction.merging_masking();
        match instruction.op_kind(op) {
            OpKind::Register if !moves && (read || merged) => {
                let register = instruction.op_register(op);
                if register.is_gpr() {
                    list.push(Wanted::Register(register.full_register()));
                } else if register.is_vector_register() {
                    list.push(Wanted::Vector(register));
                } else if register.is_k() {
                    list.push(Wanted::Mask(register));
                }
            }
            OpKind::Memory if read => {
                let size = instruction.memory_size();
                let bytes = if instruction.is_broadcast() { size.element_size() } else { size.size() };
                if bytes <= 64 && bytes.is_power_of_two() {
                    list.push(Wanted::Content { bytes: bytes as u8 });
                }
            }
            _ => {}
        }
    }
    list
}

/// Does it read its memory operand as a whole, and put it into a register?
fn loads(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let skipped = matches!(
        instruction.mnemonic(),
        M::Push
            | M::Pop
            | M::Call
            | M::Jmp
            | M::Nop
            | M::Leave
            | M::Enter
            | M::Xchg
            | M::Fldcw
            | M::Ldmxcsr
            | M::Vldmxcsr
    );
    !skipped && instruction.op0_kind() == OpKind::Register && instruction.op_count() > 1 && !instruction.has_op_mask()
}

/// Does the instruction nothing but move, or nothing to data at all?
#[rustfmt::skip]
fn moves(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        instruction.mnemonic(),
        M::Mov | M::Movzx | M::Movaps | M::Movapd | M::Movups | M::Movupd | M::Movdqa | M::Movdqu | M::Lddqu
            | M::Vmovaps | M::Vmovapd | M::Vmovups | M::Vmovupd | M::Vmovdqa | M::Vmovdqu
            | M::Vmovdqa32 | M::Vmovdqa64 | M::Vmovdqu8 | M::Vmovdqu16 | M::Vmovdqu32 | M::Vmovdqu64 | M::Vlddqu
            | M::Movd | M::Movq | M::Vmovd | M::Vmovq | M::Movss | M::Movsd | M::Vmovss | M::Vmovsd
            | M::Movhps | M::Movhpd | M::Movlps | M::Movlpd | M::Movbe | M::Movnti | M::Movntdq | M::Vmovntdq
            | M::Kmovb | M::Kmovw | M::Kmovd | M::Kmovq
            | M::Push | M::Pop | M::Xchg | M::Bswap | M::Leave | M::Enter | M::Call | M::Ret | M::Jmp
            | M::Nop | M::Endbr64 | M::Fxsave | M::Fxrstor | M::Xsave | M::Xsavec | M::Xrstor | M::Fldcw | M::Fnstcw
            | M::Ldmxcsr | M::Stmxcsr | M::Vldmxcsr | M::Vstmxcsr | M::Fxsave64 | M::Fxrstor64 | M::Xsave64 | M::Xsavec64 | M::Xrstor64
            | M::Clflush | M::Clflushopt | M::Clwb | M::Prefetchnta | M::Prefetcht0 | M::Prefetcht1 | M::Prefetcht2 | M::Prefetchw
            | M::Sysenter | M::Syscall
    )
}
