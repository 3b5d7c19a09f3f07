//! Which values an instruction has.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// A value that flow mode gives for an instruction. All are taken before the instruction runs, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Logged {
    /// Address of the explicit memory operand, segment base included.
    Operand,
    /// The stack pointer of an instruction that pushes or pops (`pop`, `ret` and `popf` read there; `push`, `call`, `enter` and
    /// `pushf` write below). For `leave`: `rbp`, from where it pops.
    Stack,
    /// `rsi` of a string instruction.
    Source,
    /// `rdi` of a string instruction or `maskmov*`; the destination of `movdir64b`; `rax` of `clzero`.
    Destination,
    /// `rcx` of a repeated string instruction.
    Count,
    /// `rcx` *after* a `repe`/`repne` `cmps` or `scas`: it went over `Count - Remaining` elements.
    Remaining,
}

/// The values of one instruction, in order. The flag: see [`super::Value::opaque`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    values: [Option<(Logged, bool)>; 4],
}

impl List {
    pub fn iter(&self) -> impl Iterator<Item = (Logged, bool)> + '_ {
        self.values.iter().flatten().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.values[0].is_none()
    }

    fn push(&mut self, what: Logged, opaque: bool) {
        if let Some(free) = self.values.iter_mut().find(|value| value.is_none()) {
            *free = Some((what, opaque));
        }
    }
}

/// Which values flow mode gives for `instruction`.
pub fn logged(instruction: &Instruction) -> List {
    let mut list = List::default();
    if !carries_data(instruction) {
        return list;
    }
    let kinds = || (0..instruction.op_count()).map(|op| instruction.op_kind(op));
    if kinds().any(|kind| kind == OpKind::Memory) {
        list.push(Logged::Operand, operand_is_opaque(instruction));
    }
    if instruction.is_stack_instruction() && !is_far_or_system(instruction) {
        list.push(Logged::Stack, instruction.mnemonic() == Mnemonic::Enter);
    }
    if kinds().any(|kind| matches!(kind, OpKind::MemorySegRSI | OpKind::MemorySegESI)) {
        list.push(Logged::Source, false);
    }
    if kinds().any(|kind| {
        matches!(kind, OpKind::MemoryESRDI | OpKind::MemoryESEDI | OpKind::MemorySegRDI | OpKind::MemorySegEDI)
    }) || destination_register(instruction).is_some()
    {
        list.push(Logged::Destination, instruction.mnemonic() == Mnemonic::Clzero);
    }
    if instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix()) {
        list.push(Logged::Count, false);
        if compares(instruction) {
            list.push(Logged::Remaining, false);
        }
    }
    list
}

/// A destination that is named by a register and not by a memory operand.
pub(super) fn destination_register(instruction: &Instruction) -> Option<Register> {
    match instruction.mnemonic() {
        Mnemonic::Movdir64b => Some(instruction.op0_register()),
        Mnemonic::Clzero => Some(Register::RAX),
        _ => None,
    }
}

/// String instructions that may end before `rcx` is 0.
fn compares(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        instruction.mnemonic(),
        M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq | M::Scasb | M::Scasw | M::Scasd | M::Scasq
    )
}

#[rustfmt::skip]
fn carries_data(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    !matches!(
        instruction.mnemonic(),
        M::Lea | M::Nop | M::Reservednop | M::Prefetch | M::Prefetchnta | M::Prefetcht0 | M::Prefetcht1 | M::Prefetcht2
            | M::Prefetchw | M::Prefetchwt1 | M::Prefetchit0 | M::Prefetchit1
            | M::Clflush | M::Clflushopt | M::Clwb | M::Cldemote | M::Invlpg | M::Bndmk | M::Monitor | M::Umonitor
    )
}

fn is_far_or_system(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(instruction.mnemonic(), M::Int | M::Int1 | M::Int3 | M::Iret | M::Iretd | M::Iretq | M::Retf | M::Uiret)
}

fn operand_is_opaque(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    if instruction.is_vsib() || !index_is_general(instruction) {
        return true;
    }
    match instruction.mnemonic() {
        M::Bt | M::Bts | M::Btr | M::Btc => instruction.op1_kind() == OpKind::Register,
        M::Xsave | M::Xsave64 | M::Xsavec | M::Xsavec64 | M::Xsaveopt | M::Xsaveopt64 | M::Xsaves | M::Xsaves64 => true,
        M::Xrstor | M::Xrstor64 | M::Xrstors | M::Xrstors64 => true,
        M::Tileloadd | M::Tileloaddt1 | M::Tilestored => true,
        _ => false,
    }
}

/// `xlat` has `al` for an index, gathers a vector.
pub(super) fn index_is_general(instruction: &Instruction) -> bool {
    let index = instruction.memory_index();
    index == Register::None || index.is_gpr32() || index.is_gpr64()
}
