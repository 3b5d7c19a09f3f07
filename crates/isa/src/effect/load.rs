//! What an instruction reads from memory, for the optional load mode.
//!
//! Deviation: an arithmetic AVX-512 instruction under an opmask counts as reading its whole operand; only moves,
//! expands and gathers are read element by element.

use super::resolve::{element, opmask, size, vector_addresses};
use super::{MaskSource, Opmask, StateArea};
use iced_x86::{Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register};

/// One range that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Load {
    pub form: LoadForm,
    /// Writes the same bytes afterwards.
    pub also_writes: bool,
}

/// Which bytes are read. "The operand" is the instruction's explicit memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadForm {
    /// The operand, all of it.
    Explicit { size: u32 },
    /// As `Form::BitOffset`.
    BitOffset { size: u8, bit: Register },
    /// The enabled elements of the operand.
    Masked { element: u8, size: u32, mask: MaskSource },
    /// As many elements as are enabled, in a row from the operand's address.
    Expand { element: u8, size: u32, mask: Opmask },
    /// As `Form::Scatter`; the mask is consumed element by element.
    Gather { element: u8, index: u8, count: u8, mask: MaskSource },
    /// At `rsi` (any segment) or at `es:rdi`, in the direction of DF; up to `rcx` times if it `repeats`.
    String { element: u8, at: StringAt, repeats: bool },
    /// `xlat`: the byte at `rbx` + `al`.
    Xlat,
    /// At the stack pointer: `pop`, `ret`, `leave`, `popf`. A caller that asks for data may skip these.
    Stack { size: u32 },
    /// The operand, laid out by XSAVE or FXSAVE.
    State(StateArea),
    /// Reads memory in a way that is not known here (system instructions, AMX tiles, PadLock).
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StringAt {
    Rsi,
    Rdi,
}

/// The ranges that one instruction reads: none, one, or two (`cmps`, `pop` and `call` with a memory operand, …).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loads {
    loads: [Option<Load>; 2],
}

impl Loads {
    pub fn iter(&self) -> impl Iterator<Item = &Load> {
        self.loads.iter().flatten()
    }

    fn push(&mut self, form: LoadForm, also_writes: bool) {
        if let Some(free) = self.loads.iter_mut().find(|load| load.is_none()) {
            *free = Some(Load { form, also_writes });
        }
    }
}

/// What `instruction` reads from memory.
pub fn loads(instruction: &Instruction) -> Loads {
    let mut loads = Loads::default();
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
    let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    for op in 0..instruction.op_count() {
        let access = info.op_access(op);
        if !is_read(access) {
            continue;
        }
        let also_writes = matches!(access, OpAccess::ReadWrite | OpAccess::ReadCondWrite);
        let element = size(instruction) as u8;
        let form = match instruction.op_kind(op) {
            OpKind::Memory if instruction.mnemonic() == Mnemonic::Xlatb => LoadForm::Xlat,
            OpKind::Memory => operand(instruction),
            OpKind::MemorySegRSI | OpKind::MemorySegESI => LoadForm::String { element, at: StringAt::Rsi, repeats },
            OpKind::MemoryESRDI | OpKind::MemoryESEDI => LoadForm::String { element, at: StringAt::Rdi, repeats },
            _ => continue,
        };
        loads.push(form, also_writes);
    }
    let elsewhere = info.used_memory().iter().any(|memory| is_read(memory.access()));
    let popped: u32 = info
        .used_memory()
        .iter()
        .filter(|memory| {
            is_read(memory.access()) && instruction.stack_pointer_increment() > 0 && is_stack(memory.base())
        })
        .map(|memory| memory.memory_size().size() as u32)
        .sum();
    let popped = if instruction.mnemonic() == Mnemonic::Leave { size_of_leave(instruction) } else { popped };
    if popped > 0 {
        loads.push(LoadForm::Stack { size: popped }, false);
    }
    if elsewhere && loads.iter().next().is_none() {
        loads.push(LoadForm::Unknown, false);
    }
    loads
}

fn is_read(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn is_stack(base: Register) -> bool {
    matches!(base, Register::RSP | Register::ESP | Register::SP)
}

/// `leave` pops from where `rbp` points.
fn size_of_leave(instruction: &Instruction) -> u32 {
    if instruction.code() == iced_x86::Code::Leavew { 2 } else { 8 }
}

fn operand(instruction: &Instruction) -> LoadForm {
    use Mnemonic as M;
    let size = size(instruction);
    let to = instruction.op0_register();
    match instruction.mnemonic() {
        M::Bt | M::Bts | M::Btr | M::Btc if instruction.op1_kind() == OpKind::Register => {
            LoadForm::BitOffset { size: size as u8, bit: instruction.op1_register() }
        }
        M::Vmaskmovps | M::Vmaskmovpd | M::Vpmaskmovd | M::Vpmaskmovq => {
            let mask = MaskSource::TopBits(instruction.op1_register());
            LoadForm::Masked { element: element(instruction), size, mask }
        }
        M::Fxrstor | M::Fxrstor64 => LoadForm::State(StateArea::Fxsave),
        M::Xrstor | M::Xrstor64 | M::Xsave | M::Xsave64 | M::Xsaveopt | M::Xsaveopt64 => {
            LoadForm::State(StateArea::Xsave)
        }
        M::Xrstors | M::Xrstors64 => LoadForm::State(StateArea::Xsaves),
        _ if instruction.is_vsib() => {
            let mask = match opmask(instruction) {
                Some(mask) => MaskSource::Opmask(mask),
                // AVX2: the third operand.
                None => MaskSource::TopBits(instruction.op2_register()),
            };
            let (element, index, count) = vector_addresses(instruction, to);
            LoadForm::Gather { element, index, count, mask }
        }
        _ if size == 0 => LoadForm::Unknown,
        mnemonic => match opmask(instruction) {
            Some(mask) if is_expand(mnemonic) => LoadForm::Expand { element: element(instruction), size, mask },
            Some(mask) if is_vector_move(mnemonic) => {
                LoadForm::Masked { element: element(instruction), size, mask: MaskSource::Opmask(mask) }
            }
            _ => LoadForm::Explicit { size },
        },
    }
}

fn is_expand(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(mnemonic, M::Vexpandps | M::Vexpandpd | M::Vpexpandb | M::Vpexpandw | M::Vpexpandd | M::Vpexpandq)
}

#[rustfmt::skip]
fn is_vector_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Vmovaps | M::Vmovapd | M::Vmovups | M::Vmovupd | M::Vmovdqa32 | M::Vmovdqa64
            | M::Vmovdqu8 | M::Vmovdqu16 | M::Vmovdqu32 | M::Vmovdqu64 | M::Vmovss | M::Vmovsd | M::Vmovsh
    )
}
