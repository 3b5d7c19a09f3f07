//! From a decoded instruction and its family's rule to its effect.

use super::table::{self, EffectRule};
use super::{Effect, Form, How, MaskSource, Opmask, StoreShape};
use iced_x86::{
    Code, Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register,
};

/// What `instruction` does to memory. It must be valid 64-bit code.
pub fn effect(instruction: &Instruction) -> Effect {
    match table::rule(instruction.mnemonic()) {
        Some(rule) => apply(rule, instruction),
        None => derive(instruction),
    }
}

/// Whether the table has this instruction; the effect of others is derived from the decoder's own facts.
pub fn is_listed(mnemonic: Mnemonic) -> bool {
    table::rule(mnemonic).is_some()
}

fn apply(rule: EffectRule, instruction: &Instruction) -> Effect {
    let to_memory = instruction.op0_kind() == OpKind::Memory && instruction.op_count() > 0;
    match rule {
        EffectRule::Store(how) if to_memory => store(how, enabled(instruction), false),
        EffectRule::Update if to_memory => update(explicit(instruction), instruction.has_lock_prefix()),
        EffectRule::LockedUpdate if to_memory => Effect::Rmw(explicit(instruction)),
        EffectRule::BitUpdate if to_memory => {
            let form = match instruction.op1_kind() {
                OpKind::Register => Form::BitOffset { size: size(instruction) as u8, bit: instruction.op1_register() },
                _ => explicit(instruction),
            };
            update(form, instruction.has_lock_prefix())
        }
        EffectRule::VectorMasked if to_memory => {
            let mask = MaskSource::TopBits(instruction.op1_register());
            let form = Form::Masked { element: element(instruction), size: size(instruction), mask };
            store(How::Plain, form, false)
        }
        EffectRule::Compress if to_memory => {
            let form = match opmask(instruction) {
                Some(mask) => Form::Compress { element: element(instruction), size: size(instruction), mask },
                None => explicit(instruction),
            };
            store(How::Plain, form, false)
        }
        EffectRule::Scatter => scatter(instruction),
        EffectRule::ByteMasked => {
            let mask = instruction.op2_register();
            store(How::NonTemporal, Form::ByteMask { size: size(instruction) as u8, mask }, false)
        }
        // `movsd` is also the name of an SSE move.
        EffectRule::String if to_memory => store(How::Plain, explicit(instruction), false),
        EffectRule::String if matches!(instruction.op0_kind(), OpKind::MemoryESRDI | OpKind::MemoryESEDI) => {
            let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
            store(How::Plain, Form::String { element: size(instruction) as u8, repeats }, false)
        }
        EffectRule::Push => push(-instruction.stack_pointer_increment()),
        EffectRule::Call if instruction.is_call_far() || instruction.is_call_far_indirect() => {
            Effect::Unsupported("a far call")
        }
        EffectRule::Call => push(-instruction.stack_pointer_increment()),
        // SDM, ENTER: the nesting level is taken modulo 32.
        EffectRule::Enter if !instruction.immediate8_2nd().is_multiple_of(32) => Effect::Unsupported("a nested enter"),
        EffectRule::Enter if instruction.code() == Code::Enterw_imm16_imm8 => push(2),
        EffectRule::Enter => push(8),
        EffectRule::Pop if to_memory => store(How::Plain, Form::Pop { size: size(instruction) as u8 }, false),
        EffectRule::State(area) if to_memory => store(How::Plain, Form::State(area), false),
        EffectRule::Movdir64b => store(How::Direct64, Form::Movdir64b { to: instruction.op0_register() }, false),
        EffectRule::Clzero => store(How::NonTemporal, Form::ClearLine, false),
        EffectRule::Flush(kind) => Effect::Flush(kind),
        EffectRule::Fence(kind) => Effect::Fence(kind),
        EffectRule::Varies(source) => Effect::Varies(source),
        EffectRule::Unsupported(what) if writes(instruction) => Effect::Unsupported(what),
        _ => Effect::None,
    }
}

fn store(how: How, form: Form, also_reads: bool) -> Effect {
    Effect::Store(StoreShape { how, form, also_reads })
}

fn update(form: Form, locked: bool) -> Effect {
    if locked { Effect::Rmw(form) } else { store(How::Plain, form, true) }
}

fn push(size: i32) -> Effect {
    store(How::Plain, Form::Push { size: size as u8 }, false)
}

pub(super) fn size(instruction: &Instruction) -> u32 {
    instruction.memory_size().size() as u32
}

pub(super) fn element(instruction: &Instruction) -> u8 {
    instruction.memory_size().element_size() as u8
}

pub(super) fn explicit(instruction: &Instruction) -> Form {
    Form::Explicit { size: size(instruction) }
}

pub(super) fn opmask(instruction: &Instruction) -> Option<Opmask> {
    match instruction.op_mask() {
        Register::None => None,
        mask => Some(Opmask((mask as u32 - Register::K0 as u32) as u8)),
    }
}

/// The operand, or what the opmask leaves of it.
fn enabled(instruction: &Instruction) -> Form {
    match opmask(instruction) {
        Some(mask) => {
            let mask = MaskSource::Opmask(mask);
            Form::Masked { element: element(instruction), size: size(instruction), mask }
        }
        None => explicit(instruction),
    }
}

fn scatter(instruction: &Instruction) -> Effect {
    let Some(mask) = opmask(instruction) else { return Effect::Unsupported("a scatter without a mask") };
    let (element, index, count) = vector_addresses(instruction, instruction.op1_register());
    store(How::Plain, Form::Scatter { element, index, count, mask }, false)
}

/// Bytes per element, bytes per index and number of elements of a gather or scatter between memory and `data`:
/// the shorter of the two vectors counts.
pub(super) fn vector_addresses(instruction: &Instruction, data: Register) -> (u8, u8, u8) {
    let element = element(instruction);
    let index = if instruction.is_vsib32() { 4 } else { 8 };
    let indices = instruction.memory_index().size() / index as usize;
    let elements = data.size() / element as usize;
    (element, index, indices.min(elements) as u8)
}

fn accesses(instruction: &Instruction, mut each: impl FnMut(OpAccess)) {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
    info.used_memory().iter().for_each(|memory| each(memory.access()));
}

fn is_write(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes(instruction: &Instruction) -> bool {
    let mut writes = false;
    accesses(instruction, |access| writes |= is_write(access));
    writes
}

/// For what no row names: instructions that a later decoder knows and this table does not.
fn derive(instruction: &Instruction) -> Effect {
    let (mut count, mut reads) = (0, false);
    accesses(instruction, |access| {
        count += is_write(access) as u32;
        reads |= matches!(access, OpAccess::ReadWrite | OpAccess::ReadCondWrite);
    });
    let to_memory = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Memory;
    match (count, enabled(instruction)) {
        (0, _) => Effect::None,
        (1, Form::Explicit { size: 1.. }) if to_memory && reads => {
            update(explicit(instruction), instruction.has_lock_prefix())
        }
        (1, form @ (Form::Explicit { size: 1.. } | Form::Masked { size: 1.., .. })) if to_memory && !reads => {
            store(How::Plain, form, false)
        }
        _ => Effect::Unsupported("an instruction that is not in the table of effects"),
    }
}
