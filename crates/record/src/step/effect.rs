//! What one instruction is about to do to memory, worked out from its operands before it executes.

use trace::event::{FenceKind, FlushKind, StoreKind};
use yaxpeax_x86::long_mode::{InstDecoder, Instruction, Opcode, Operand, RegSpec, register_class as class};

use super::operand::{self, MemoryOperand, memory_operand};
use super::ptrace::Registers;
use super::scatter;
use super::table;
use super::unknown::{self, MaskMove};
use super::xstate::{self, ExtendedState};

/// A byte range in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub address: u64,
    pub len: u64,
}

/// What matters about an instruction besides what it stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    None,
    Call,
    Syscall,
    PushFlags,
    /// `int3`.
    Trap,
    /// A string instruction with a repeat prefix: each single step is one iteration.
    Repeat,
    TimeStamp {
        with_processor: bool,
    },
    ProcessorId(RegSpec),
    Random(RegSpec),
    Flush(FlushKind, u64),
    Fence(FenceKind),
    /// May trap between its elements: the step is repeated until the instruction is done (SDM vol. 2, VPSCATTERDD).
    InParts,
    /// Cannot be recorded.
    Unsupported(&'static str),
}

/// What the instruction will do.
#[derive(Clone, Debug)]
pub struct Effect {
    pub special: Special,
    pub store_kind: StoreKind,
    /// In the order of the events.
    pub stores: Vec<Span>,
    /// `lock`, or `xchg` with memory.
    pub locked: bool,
    pub loads: Vec<Span>,
}

impl Effect {
    fn of_stores(stores: Vec<Span>) -> Effect {
        Effect { special: Special::None, store_kind: StoreKind::Plain, stores, locked: false, loads: Vec::new() }
    }
}

/// Decodes the instruction that `code` begins with and works out its effect; none if the bytes are not known.
/// `extended` is asked only for instructions that depend on vector or mask registers.
pub fn predict<E>(
    code: &[u8],
    registers: &Registers,
    extended: impl FnOnce() -> Result<ExtendedState, E>,
) -> Result<Option<(Instruction, Effect)>, E> {
    if let Some(scatter) = scatter::decode(code) {
        let stores = scatter.stores(registers, &extended()?);
        let effect = Effect { special: Special::InParts, ..Effect::of_stores(stores) };
        return Ok(Some((scatter.stand_in, effect)));
    }
    if let Ok(instruction) = InstDecoder::default().decode_slice(code) {
        let effect = effect(code, &instruction, registers, extended)?;
        return Ok(Some((instruction, effect)));
    }
    let mask_move = unknown::mask_move(code);
    Ok(mask_move.map(|mask_move| (mask_move.stand_in, of_mask_move(&mask_move, registers))))
}

/// The effect of a decoded instruction.
pub fn effect<E>(
    bytes: &[u8],
    instruction: &Instruction,
    registers: &Registers,
    extended: impl FnOnce() -> Result<ExtendedState, E>,
) -> Result<Effect, E> {
    let opcode = instruction.opcode();
    let memory = memory_operand(instruction);
    let mut effect = Effect {
        special: special(bytes, instruction, registers, memory.as_ref()),
        store_kind: store_kind(opcode),
        stores: Vec::new(),
        locked: memory.is_some() && (instruction.prefixes.lock() || opcode == Opcode::XCHG),
        loads: Vec::new(),
    };
    effect.stores = if needs_extended_state(opcode, memory.as_ref()) {
        vector_stores(instruction, registers, memory.as_ref(), &extended()?)
    } else {
        plain_stores(instruction, registers, memory.as_ref())
    };
    effect.loads = loads(instruction, registers, memory.as_ref());
    Ok(effect)
}

/// The effect of a `kmov` with memory.
fn of_mask_move(mask_move: &MaskMove, registers: &Registers) -> Effect {
    let operand = memory_operand(&mask_move.stand_in);
    let address = |operand: MemoryOperand| operand.address(&mask_move.stand_in, registers);
    let spans: Vec<Span> = operand.map(|o| Span { address: address(o), len: mask_move.bytes }).into_iter().collect();
    let (stores, loads) = if mask_move.stores { (spans, Vec::new()) } else { (Vec::new(), spans) };
    Effect { loads, ..Effect::of_stores(stores) }
}

fn store_kind(opcode: Opcode) -> StoreKind {
    match opcode {
        Opcode::MOVDIR64B => StoreKind::Direct64,
        _ if table::is_non_temporal(opcode) => StoreKind::NonTemporal,
        _ => StoreKind::Plain,
    }
}

fn special(bytes: &[u8], instruction: &Instruction, registers: &Registers, memory: Option<&MemoryOperand>) -> Special {
    let first_register = || match instruction.operand(0) {
        Operand::Register { reg } => Some(reg),
        _ => None,
    };
    let address = || memory.map_or(0, |memory| memory.address(instruction, registers));
    match instruction.opcode() {
        Opcode::CALL => Special::Call,
        Opcode::SYSCALL => Special::Syscall,
        Opcode::PUSHF => Special::PushFlags,
        Opcode::MOVS | Opcode::STOS | Opcode::CMPS | Opcode::SCAS | Opcode::LODS if instruction.prefixes.rep_any() => {
            Special::Repeat
        }
        Opcode::RDTSC => Special::TimeStamp { with_processor: false },
        Opcode::RDTSCP => Special::TimeStamp { with_processor: true },
        Opcode::RDPID => first_register().map_or(Special::None, Special::ProcessorId),
        Opcode::RDRAND | Opcode::RDSEED => first_register().map_or(Special::None, Special::Random),
        Opcode::CLFLUSH => Special::Flush(FlushKind::Clflush, address()),
        Opcode::CLFLUSHOPT => Special::Flush(FlushKind::Clflushopt, address()),
        Opcode::CLWB => Special::Flush(FlushKind::Clwb, address()),
        Opcode::NOP if memory.is_some() && is_cldemote(bytes) => Special::Flush(FlushKind::Cldemote, address()),
        Opcode::SFENCE => Special::Fence(FenceKind::Sfence),
        Opcode::MFENCE => Special::Fence(FenceKind::Mfence),
        Opcode::CALLF | Opcode::JMPF | Opcode::RETF => Special::Unsupported("is a far transfer"),
        Opcode::INT if bytes.first() == Some(&0xcc) => Special::Trap,
        Opcode::INT | Opcode::SYSENTER => Special::Unsupported("is a 32-bit system call or a software interrupt"),
        _ => Special::None,
    }
}

/// `NP 0F 1C /0` with a memory operand; the decoder takes it for a `nop`.
fn is_cldemote(bytes: &[u8]) -> bool {
    // Segment, address size and REX prefixes do not change the instruction; 66, F2 and F3 do.
    let body =
        bytes.iter().position(|byte| !matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x67 | 0x40..=0x4f));
    let Some(body) = body.map(|start| &bytes[start..]) else { return false };
    matches!(body, [0x0f, 0x1c, modrm, ..] if modrm >> 3 & 7 == 0 && modrm >> 6 != 3)
}

fn needs_extended_state(opcode: Opcode, memory: Option<&MemoryOperand>) -> bool {
    let masked = memory.is_some_and(|memory| memory.mask.is_some());
    masked
        || table::is_compress(opcode)
        || table::vector_mask_element(opcode).is_some()
        || matches!(opcode, Opcode::MASKMOVQ | Opcode::MASKMOVDQU | Opcode::VMASKMOVDQU)
}

/// A 66 prefix counts unless REX.W overrides it.
fn has_short_operand(instruction: &Instruction) -> bool {
    instruction.prefixes.operand_size() && !has_wide_operand(instruction)
}

fn has_wide_operand(instruction: &Instruction) -> bool {
    instruction.prefixes.rex().is_some_and(|rex| rex.w())
}

/// Size of the memory operand.
fn operand_size(instruction: &Instruction) -> u64 {
    table::fixed_size(instruction.opcode(), has_short_operand(instruction))
        .unwrap_or_else(|| instruction.mem_size().and_then(|size| size.bytes_size()).map_or(0, u64::from))
}

fn plain_stores(instruction: &Instruction, registers: &Registers, memory: Option<&MemoryOperand>) -> Vec<Span> {
    let below_stack = |bytes: u64| vec![Span { address: registers.rsp.wrapping_sub(bytes), len: bytes }];
    let opcode = instruction.opcode();
    match opcode {
        Opcode::CALL => below_stack(8),
        Opcode::PUSH | Opcode::PUSHF => below_stack(if has_short_operand(instruction) { 2 } else { 8 }),
        Opcode::ENTER => enter(instruction, registers),
        Opcode::CLZERO => vec![Span { address: registers.rax & !63, len: 64 }],
        Opcode::MOVDIR64B => movdir64b(instruction, registers),
        Opcode::MOVS | Opcode::STOS | Opcode::INS => string(instruction, registers),
        _ => {
            let Some(memory) = memory else { return Vec::new() };
            if opcode != Opcode::XCHG && (memory.position != 0 || table::only_reads_first_operand(opcode)) {
                return Vec::new();
            }
            explicit(instruction, registers, memory)
        }
    }
}

fn explicit(instruction: &Instruction, registers: &Registers, memory: &MemoryOperand) -> Vec<Span> {
    let short = has_short_operand(instruction);
    let mut address = memory.address(instruction, registers);
    let mut len = operand_size(instruction);
    match instruction.opcode() {
        Opcode::BTS | Opcode::BTR | Opcode::BTC => {
            if let Operand::Register { reg } = instruction.operand(1) {
                len = reg.width().into();
                address = address.wrapping_add_signed(bit_string_offset(registers, reg));
            } else {
                // The decoder takes the immediate forms for 8 bytes wide, whatever the prefixes.
                len = if short {
                    2
                } else if has_wide_operand(instruction) {
                    8
                } else {
                    4
                };
            }
        }
        // SDM, POP: an address based on rsp is computed after rsp has moved.
        Opcode::POP => {
            len = if short { 2 } else { 8 };
            let popped = Registers { rsp: registers.rsp.wrapping_add(len), ..*registers };
            address = memory.address(instruction, &popped);
        }
        Opcode::XSAVE | Opcode::XSAVEOPT => len = xstate::area_bytes(requested_components(registers), false),
        Opcode::XSAVEC | Opcode::XSAVEC64 => len = xstate::area_bytes(requested_components(registers), true),
        _ => {}
    }
    vec![Span { address, len }]
}

fn requested_components(registers: &Registers) -> u64 {
    registers.rdx << 32 | registers.rax & 0xffff_ffff
}

/// SDM vol. 2 §3.1.1.9, bit string addressing: the signed bit number selects the operand-sized unit.
fn bit_string_offset(registers: &Registers, bit: RegSpec) -> i64 {
    let value = operand::register(registers, bit);
    match bit.width() {
        2 => i64::from(value as u16 as i16 >> 4) * 2,
        4 => i64::from(value as u32 as i32 >> 5) * 4,
        _ => (value as i64 >> 6) * 8,
    }
}

/// Level 0 pushes rbp; level n pushes n more words (SDM, ENTER).
fn enter(instruction: &Instruction, registers: &Registers) -> Vec<Span> {
    let level = match instruction.operand(1) {
        Operand::ImmediateU8 { imm } => u64::from(imm) % 32,
        Operand::ImmediateI8 { imm } => u64::from(imm.cast_unsigned()) % 32,
        _ => 0,
    };
    let pushes = if level == 0 { 1 } else { level + 1 };
    (1..=pushes).map(|i| Span { address: registers.rsp.wrapping_sub(8 * i), len: 8 }).collect()
}

fn movdir64b(instruction: &Instruction, registers: &Registers) -> Vec<Span> {
    let address = match instruction.operand(0) {
        Operand::Register { reg } | Operand::MemDeref { base: reg } => operand::register(registers, reg),
        _ => return Vec::new(),
    };
    vec![Span { address, len: 64 }]
}

/// One iteration of `movs` or `stos`; none if the repeat count is used up.
fn string(instruction: &Instruction, registers: &Registers) -> Vec<Span> {
    let short = instruction.prefixes.address_size();
    let cut = |value: u64| if short { value & 0xffff_ffff } else { value };
    if instruction.prefixes.rep_any() && cut(registers.rcx) == 0 {
        return Vec::new();
    }
    vec![Span { address: cut(registers.rdi), len: operand_size(instruction) }]
}

fn vector_stores(
    instruction: &Instruction,
    registers: &Registers,
    memory: Option<&MemoryOperand>,
    extended: &ExtendedState,
) -> Vec<Span> {
    let opcode = instruction.opcode();
    if matches!(opcode, Opcode::MASKMOVQ | Opcode::MASKMOVDQU | Opcode::VMASKMOVDQU) {
        return byte_masked(instruction, registers, extended);
    }
    // Gathers and masked loads have their memory operand in second place.
    let Some(memory) = memory.filter(|memory| memory.position == 0) else { return Vec::new() };
    if table::only_reads_first_operand(opcode) {
        return Vec::new();
    }
    let address = memory.address(instruction, registers);
    if let Some(element) = table::vector_mask_element(opcode) {
        let Operand::Register { reg } = instruction.operand(1) else { return Vec::new() };
        let mask = extended.vector(reg.num());
        let enabled = |i: u64| mask[((i + 1) * element - 1) as usize] & 0x80 != 0;
        return runs(address, element, u64::from(reg.width()) / element, enabled);
    }
    let mask = memory.mask.map_or(u64::MAX, |k| extended.mask(k));
    let len = operand_size(instruction);
    let Some(element) = table::mask_element(opcode) else { return vec![Span { address, len }] };
    let count = if table::is_compress(opcode) { source_width(instruction) / element } else { len / element };
    if table::is_compress(opcode) {
        let lanes = if count >= 64 { mask } else { mask & ((1 << count) - 1) };
        let len = u64::from(lanes.count_ones()) * element;
        return if len == 0 { Vec::new() } else { vec![Span { address, len }] };
    }
    runs(address, element, count, |i| mask >> i & 1 != 0)
}

fn source_width(instruction: &Instruction) -> u64 {
    vector_register(instruction.operand(1)).map_or(0, |reg| reg.width().into())
}

fn vector_register(operand: Operand) -> Option<RegSpec> {
    match operand {
        Operand::Register { reg } | Operand::RegisterMaskMerge { reg, .. } => Some(reg),
        _ => None,
    }
}

/// Maximal runs of enabled elements, by ascending address.
fn runs(address: u64, element: u64, count: u64, enabled: impl Fn(u64) -> bool) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for i in (0..count).filter(|&i| enabled(i)) {
        let at = address.wrapping_add(i * element);
        match spans.last_mut() {
            Some(last) if last.address.wrapping_add(last.len) == at => last.len += element,
            _ => spans.push(Span { address: at, len: element }),
        }
    }
    spans
}

/// `maskmovq`, `maskmovdqu`: bytes of the first register go to `[rdi]` where the second one's top bits say so.
fn byte_masked(instruction: &Instruction, registers: &Registers, extended: &ExtendedState) -> Vec<Span> {
    let mask = (0..instruction.operand_count()).filter_map(|i| vector_register(instruction.operand(i))).next_back();
    let Some(mask) = mask else { return Vec::new() };
    let short = instruction.prefixes.address_size();
    let offset = if short { registers.rdi & 0xffff_ffff } else { registers.rdi };
    let address = operand::segment_base(instruction.prefixes.segment(), registers).wrapping_add(offset);
    if mask.class() == class::MM {
        let bytes = extended.mmx(mask.num());
        return runs(address, 1, 8, |i| bytes[i as usize] & 0x80 != 0);
    }
    let bytes = extended.vector(mask.num());
    runs(address, 1, 16, |i| bytes[i as usize] & 0x80 != 0)
}

/// What the instruction reads, for the optional load events: explicit operands and string sources.
fn loads(instruction: &Instruction, registers: &Registers, memory: Option<&MemoryOperand>) -> Vec<Span> {
    use Opcode::*;
    let opcode = instruction.opcode();
    let Some(memory) = memory else { return Vec::new() };
    let touches_nothing = matches!(
        opcode,
        LEA | NOP
            | PREFETCHNTA
            | PREFETCH0
            | PREFETCH1
            | PREFETCH2
            | PREFETCHW
            | CLFLUSH
            | CLFLUSHOPT
            | CLWB
            | UD0
            | UD1
    );
    if touches_nothing || memory.index.is_some_and(|index| matches!(index.class(), class::X | class::Y | class::Z)) {
        return Vec::new();
    }
    let len = operand_size(instruction);
    let string_source = || operand::segment_base(instruction.prefixes.segment(), registers).wrapping_add(registers.rsi);
    let used_up = instruction.prefixes.rep_any() && registers.rcx == 0;
    match opcode {
        MOVS | STOS | LODS | CMPS | SCAS if used_up => Vec::new(),
        STOS => Vec::new(),
        MOVS | LODS => vec![Span { address: string_source(), len }],
        CMPS => vec![Span { address: string_source(), len }, Span { address: registers.rdi, len }],
        SCAS => vec![Span { address: registers.rdi, len }],
        _ if memory.position == 0 && !reads_destination(opcode) && !table::only_reads_first_operand(opcode) => {
            Vec::new()
        }
        _ => vec![Span { address: memory.address(instruction, registers), len }],
    }
}

/// Instructions that read the memory operand which they then write.
fn reads_destination(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        ADD | OR
            | ADC
            | SBB
            | AND
            | SUB
            | XOR
            | ROL
            | ROR
            | RCL
            | RCR
            | SHL
            | SHR
            | SAL
            | SAR
            | SHLD
            | SHRD
            | BTC
            | BTR
            | BTS
            | CMPXCHG
            | CMPXCHG8B
            | CMPXCHG16B
            | DEC
            | INC
            | NEG
            | NOT
            | XADD
            | XCHG
    )
}

#[cfg(test)]
#[path = "effect_tests.rs"]
mod tests;
