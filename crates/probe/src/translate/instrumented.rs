//! Instrumented instructions: those that have accessed PM. Each tests its address every time it runs (the same
//! instruction may also write ordinary memory, for example in `memcpy`), performs PM stores on the alias, and records them.

use alloc::vec::Vec;
use core::mem::offset_of;

use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, Instruction as Decoded, InstructionInfoFactory, MemoryOperand, Register,
};
use isa::effect::{Effect, Form, How, StoreShape, effect};
use wire::control::Control;
use wire::record::{kind, store};

use super::arena::trampoline;
use super::build::{Builder, Instruction, slot_t0};
use super::emit::{RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP, Reg};
use super::guarded::UnderEngineLock;
use super::marks::Flavour;
use super::{block, implicit, link, live, order};
use crate::layout;
use crate::map::U64Map;
use crate::pm;
use crate::site::{self, flag};
use crate::thread::{NO_PATH, Thread};

/// "No register is spilled."
pub const NO_REG: Reg = 0xff;

/// pc → how often it faulted. Kept for the life of the process: a wrong entry costs a test, never a wrong event.
static INSTRUMENTED: UnderEngineLock<U64Map<u16>> = UnderEngineLock::new(U64Map::new());
/// Sites of system calls and implicit instructions, by pc.
static PLAIN_SITES: UnderEngineLock<U64Map<u32>> = UnderEngineLock::new(U64Map::new());

pub fn is_known(pc: u64) -> bool {
    INSTRUMENTED.with(|known| known.get(pc).is_some())
}

/// Instruments the instruction from now on, and its neighbours that store through the same base register: they will
/// touch PM as well, and each fault costs microseconds.
pub fn instrument(thread: &mut Thread, pc: u64) {
    let _guard = super::lock().lock();
    let times = INSTRUMENTED.with(|known| known.get(pc)).unwrap_or(0);
    if times == MAX_FAULTS {
        crate::refuse!(thread, "the access at {pc:#x} lies partly in a pool and partly outside; that is not supported");
    }
    INSTRUMENTED.with(|known| known.insert(pc, times + 1));
    super::hints::instrumented(pc);
    neighbours(pc);
    for number in block::with_instruction(pc) {
        link::unlink(number);
    }
}

/// As [`learn`], for what a child of fork found out.
pub fn learn_told(pc: u64) {
    let _guard = super::lock().lock();
    if !is_known(pc) {
        INSTRUMENTED.with(|known| known.insert(pc, 1));
        neighbours(pc);
        for number in block::with_instruction(pc) {
            link::unlink(number);
        }
    }
}

/// An instruction is instrumented once per block that has it, and again when it meets a range table in the midst of a change;
/// one that goes on faulting cannot be instrumented.
const MAX_FAULTS: u16 = 5000;

/// Instructions to look at behind a instrumented one.
const NEAR: usize = 24;

fn neighbours(pc: u64) {
    let Some(bytes) = super::code::bytes(pc) else { return };
    let first = Decoder::with_ip(64, &bytes, pc, DecoderOptions::NONE).decode();
    let base = first.memory_base();
    if matches!(base, Register::None | Register::RSP | Register::RIP) {
        return;
    }
    let mut at = pc + first.len() as u64;
    for _ in 0..NEAR {
        let Some(bytes) = super::code::bytes(at) else { return };
        let next = Decoder::with_ip(64, &bytes, at, DecoderOptions::NONE).decode();
        if next.is_invalid() || next.flow_control() != iced_x86::FlowControl::Next {
            return;
        }
        if next.memory_base() == base
            && matches!(effect(&next), Effect::Store(StoreShape { form: Form::Explicit { .. }, .. }))
            && !is_known(at)
        {
            INSTRUMENTED.with(|known| known.insert(at, 1));
        }
        at += next.len() as u64;
    }
}

pub fn decode(i: Instruction) -> Decoded {
    Decoder::with_ip(64, &i.bytes[..i.scan.len as usize], i.pc, DecoderOptions::NONE).decode()
}

fn register(reg: Reg) -> Register {
    [
        Register::RAX,
        Register::RCX,
        Register::RDX,
        Register::RBX,
        Register::RSP,
        Register::RBP,
        Register::RSI,
        Register::RDI,
    ][reg as usize]
}

/// A register that the instruction does not use. Never one that needs a REX prefix: `mov [mem], ah` could not be encoded
/// with it.
pub fn free_register(decoded: &Decoded) -> Reg {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(decoded);
    [RDI, RSI, RBX, RDX, RCX, RBP]
        .into_iter()
        .find(|&r| info.used_registers().iter().all(|u| u.register().full_register() != register(r)))
        .unwrap_or(RAX)
}

/// The address of the memory operand into `reg`. Keeps flags and all other registers.
pub fn address(b: &mut Builder<'_>, decoded: &Decoded, reg: Reg) {
    offset_into(b, decoded, reg);
    if decoded.segment_prefix() == Register::FS {
        // FSGSBASE: the kernel offers it on every processor that has PM instructions.
        let base = if reg == RAX { RCX } else { RAX };
        b.emit.save(offset_of!(Thread, t3), base);
        b.emit.bytes(&[0xf3, 0x48, 0x0f, 0xae, 0xc0 | base]); // rdfsbase
        b.emit.bytes(&[0x48, 0x8d, 0x44 | reg << 3, base << 3 | reg, 0]); // lea reg, [reg + base + 0]
        b.emit.load(base, offset_of!(Thread, t3));
    }
}

/// `lea reg, [operand]`, without the segment's base.
fn offset_into(b: &mut Builder<'_>, decoded: &Decoded, reg: Reg) {
    if decoded.is_ip_rel_memory_operand() {
        return b.emit.constant(reg, decoded.ip_rel_memory_address());
    }
    // `pop [rsp + x]` computes its address with the increased rsp.
    let pops = decoded.mnemonic() == iced_x86::Mnemonic::Pop && decoded.memory_base() == Register::RSP;
    let displacement = decoded.memory_displacement64().wrapping_add(if pops { 8 } else { 0 });
    if decoded.memory_base() == Register::None && decoded.memory_index() == Register::None {
        return b.emit.constant(reg, displacement);
    }
    let mut operand = operand(decoded);
    operand.displacement = displacement as i64;
    let lea = Decoded::with2(Code::Lea_r64_m, register(reg), operand);
    encode(b, &lea.unwrap_or_default());
}

/// The instruction's memory operand.
pub fn operand(decoded: &Decoded) -> MemoryOperand {
    MemoryOperand::new(
        decoded.memory_base(),
        decoded.memory_index(),
        decoded.memory_index_scale(),
        decoded.memory_displacement64() as i64,
        if decoded.memory_base().is_gpr64() { 8 } else { 4 },
        false,
        Register::None,
    )
}

/// The instruction on the alias of its operand if that is PM, without a record.
pub fn on_alias(b: &mut Builder<'_>, i: Instruction, decoded: &Decoded) {
    let flags = live::flags_before(i.pc);
    let reg = free_register(decoded);
    if flags {
        save_flags(b, Spill::T0);
    }
    b.emit.save(slot_t0(), reg);
    address(b, decoded, reg);
    b.emit.save(offset_of!(Thread, ea), reg);
    on_engine_stack(b, trampoline!(is_pm));
    let outside = b.emit.short(0x73); // jnc
    b.emit.flip_to_alias(reg);
    b.emit.here(outside);
    if flags {
        restore_flags(b, Spill::T0);
    }
    b.mark(Flavour::Alias, i.pc, reg);
    encode(b, &redirected(decoded, reg));
    b.mark(Flavour::Busy, i.pc, 0);
    b.emit.load(reg, slot_t0());
}

/// Records that the operand is accessed, and leaves the access to the code that follows.
pub fn touch(b: &mut Builder<'_>, i: Instruction, decoded: &Decoded, site: u32, size: u32) {
    let flags = live::flags_before(i.pc);
    let reg = free_register(decoded);
    if flags {
        save_flags(b, Spill::T0);
    }
    b.emit.save(slot_t0(), reg);
    address(b, decoded, reg);
    b.emit.save(offset_of!(Thread, ea), reg);
    b.emit.load(reg, slot_t0());
    on_engine_stack(b, trampoline!(is_pm));
    let outside = b.emit.jcc(3); // jnc
    b.emit.save_imm64(offset_of!(Thread, old), size as u64);
    order::record(b, site, false);
    let here = b.emit.at;
    b.emit.patch(outside, here);
    if flags {
        restore_flags(b, Spill::T0);
    }
}

/// Emits an instruction through the encoder.
pub fn encode(b: &mut Builder<'_>, instruction: &Decoded) {
    let mut encoder = Encoder::new(64);
    match encoder.encode(instruction, b.emit.at) {
        Ok(_) => {
            let bytes: Vec<u8> = encoder.take_buffer();
            b.emit.bytes(&bytes);
        }
        Err(error) => crate::refuse!(b.thread, "cannot encode the instruction at {:#x}: {error}", instruction.ip()),
    }
}

/// The instruction with its memory operand replaced by `[reg]`.
fn redirected(decoded: &Decoded, reg: Reg) -> Decoded {
    let mut new = *decoded;
    // `movabs` with an absolute address has forms without ModRM only.
    match decoded.code() {
        Code::Mov_moffs8_AL => new.set_code(Code::Mov_rm8_r8),
        Code::Mov_moffs16_AX => new.set_code(Code::Mov_rm16_r16),
        Code::Mov_moffs32_EAX => new.set_code(Code::Mov_rm32_r32),
        Code::Mov_moffs64_RAX => new.set_code(Code::Mov_rm64_r64),
        Code::Mov_AL_moffs8 => new.set_code(Code::Mov_r8_rm8),
        Code::Mov_AX_moffs16 => new.set_code(Code::Mov_r16_rm16),
        Code::Mov_EAX_moffs32 => new.set_code(Code::Mov_r32_rm32),
        Code::Mov_RAX_moffs64 => new.set_code(Code::Mov_r64_rm64),
        _ => {}
    }
    new.set_memory_base(register(reg));
    new.set_memory_index(Register::None);
    new.set_memory_index_scale(1);
    new.set_memory_displacement64(0);
    new.set_memory_displ_size(0);
    new.set_segment_prefix(Register::None);
    new
}

/// A copy whose rip-relative operand is out of reach.
pub fn copy_far(b: &mut Builder<'_>, i: Instruction, target: u64) {
    let decoded = decode(i);
    let reg = free_register(&decoded);
    b.emit.save(slot_t0(), reg);
    b.emit.constant(reg, target);
    b.mark(Flavour::Spilled, i.pc, reg);
    encode(b, &redirected(&decoded, reg));
    b.mark(Flavour::Busy, i.pc, 0);
    b.emit.load(reg, slot_t0());
}

/// The site of an instruction that is recorded from Rust.
pub fn plain_site(thread: &mut Thread, pc: u64, bytes: &[u8]) -> u32 {
    let _guard = super::lock().lock();
    plain_site_locked(thread, pc, bytes)
}

pub fn plain_site_locked(thread: &mut Thread, pc: u64, bytes: &[u8]) -> u32 {
    if let Some(site) = PLAIN_SITES.with(|sites| sites.get(pc)) {
        return site;
    }
    let site = site::add(thread, pc, bytes, (kind::PAD, 0), 0, 0);
    PLAIN_SITES.with(|sites| sites.insert(pc, site));
    site
}

/// Stores that the record trampoline handles itself: one memory operand, a size that is a power of two.
fn trampoline_size(form: Form) -> Option<u32> {
    let size = match form {
        Form::Explicit { size } => size,
        Form::Pop { size } => size as u32,
        _ => return None,
    };
    (size.is_power_of_two() && size <= 64).then_some(size)
}

pub fn store_aux(how: How) -> u8 {
    match how {
        How::Plain => store::PLAIN,
        How::NonTemporal => store::NON_TEMPORAL,
        How::Direct64 => store::DIRECT64,
    }
}

pub fn emit(b: &mut Builder<'_>, i: Instruction) {
    let decoded = decode(i);
    if loading() {
        return super::loads::emit(b, i, &decoded);
    }
    emit_store(b, i, &decoded, Spill::T0);
}

/// Are loads recorded as well? Then PM is not even readable at the program's address.
pub fn loading() -> bool {
    crate::ring::control().options & wire::control::option::LOADS != 0
}

/// Where the scratch register of an instrumented access is spilled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spill {
    T0,
    /// For accesses inside a sequence that uses t0 itself.
    T3,
}

impl Spill {
    fn offset(self) -> usize {
        match self {
            Spill::T0 => slot_t0(),
            Spill::T3 => offset_of!(Thread, t3),
        }
    }

    /// Where rax and the flags go meanwhile: an indirect branch has the program's rdx in t1.
    fn for_flags(self) -> (usize, usize) {
        match self {
            Spill::T0 => (offset_of!(Thread, t1), offset_of!(Thread, t2)),
            Spill::T3 => (offset_of!(Thread, t4), offset_of!(Thread, t5)),
        }
    }
}

/// What the record trampoline takes the value from.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// PM, after the access.
    Memory,
    /// The same, and the bytes before.
    OldAndNew,
    /// The register that the instruction stores, stored once more by this instruction.
    Register(Code),
    /// A number known now (the length of a load).
    Number(u32),
}

pub fn emit_store(b: &mut Builder<'_>, i: Instruction, decoded: &Decoded, slot: Spill) {
    let decoded = *decoded;
    let (kind_aux, size, flags) = match effect(&decoded) {
        Effect::Store(StoreShape { how, form, .. }) if trampoline_size(form).is_some() => {
            let captured = if cached_twin(decoded.code()).is_some() { flag::CAPTURED } else { 0 };
            ((kind::STORE, store_aux(how)), trampoline_size(form).unwrap_or(0), captured)
        }
        Effect::Rmw(form) if trampoline_size(form).is_some() => {
            ((kind::RMW, 0), trampoline_size(form).unwrap_or(0), flag::HAS_OLD)
        }
        Effect::Store(_) | Effect::Rmw(_) => return implicit::emit(b, i),
        Effect::Unsupported(_) => return super::emulate::emit(b, i.pc, i.pc, super::emulate::What::Unsupported),
        // Only looked like a store (a load through the same register): run it as it is.
        _ => return b.copy(i),
    };
    let same = order::same_path(b);
    let site = site::add(b.thread, i.pc, &i.bytes[..i.scan.len as usize], kind_aux, size, flags | same);
    let value = match cached_twin(decoded.code()) {
        _ if flags & flag::HAS_OLD != 0 => Value::OldAndNew,
        Some(code) => Value::Register(code),
        None => Value::Memory,
    };
    explicit(b, i, &decoded, site, size, value, slot);
}

/// Flags into a spill slot (lahf's and seto's format), keeping all registers.
fn save_flags(b: &mut Builder<'_>, slot: Spill) {
    let (scratch, flags) = slot.for_flags();
    b.emit.save(scratch, RAX);
    b.emit.bytes(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
    b.emit.save(flags, RAX);
    b.emit.load(RAX, scratch);
}

fn restore_flags(b: &mut Builder<'_>, slot: Spill) {
    let (scratch, flags) = slot.for_flags();
    b.emit.save(scratch, RAX);
    b.emit.load(RAX, flags);
    b.emit.bytes(&[0x04, 0x7f, 0x9e]); // add al, 0x7f (sets OF as it was); sahf
    b.emit.load(RAX, scratch);
}

pub fn on_engine_stack(b: &mut Builder<'_>, trampoline: u64) {
    b.emit.save(offset_of!(Thread, app_rsp), RSP);
    b.emit.load(RSP, offset_of!(Thread, engine_rsp));
    b.emit.call_through(trampoline);
    b.emit.load(RSP, offset_of!(Thread, app_rsp));
}

/// An access through the instruction's memory operand: tests the address, performs it on the alias, records it.
pub fn explicit(
    b: &mut Builder<'_>,
    i: Instruction,
    decoded: &Decoded,
    site: u32,
    size: u32,
    value: Value,
    slot: Spill,
) {
    let flags_in = live::flags_before(i.pc);
    let flags_out = live::flags_before(i.next());
    let reg = free_register(decoded);
    let lo = pm::PM_LO.as_ptr() as u64;
    let span = pm::PM_SPAN.as_ptr() as u64;
    if flags_in {
        save_flags(b, slot);
    }
    b.emit.save(slot.offset(), reg);
    address(b, decoded, reg);
    b.emit.absolute(0x2b, reg, lo); // sub reg, [lo]
    b.emit.absolute(0x3b, reg, span); // cmp reg, [span]
    let outside = b.emit.jcc(3); // jae
    b.emit.absolute(0x03, reg, lo); // add reg, [lo]
    b.emit.save(offset_of!(Thread, ea), reg);
    let is_pm = b.emit.at;
    b.emit.cmp_absolute_byte(layout::CONTROL + offset_of!(Control, many_tasks) as u64, 0);
    let many = b.emit.jcc(5);
    let ordered = b.emit.at;
    b.emit.flip_to_alias(reg);
    if let Value::OldAndNew = value {
        keep_old(b, reg, size);
    }
    if flags_in {
        restore_flags(b, slot);
    }
    b.mark(Flavour::Alias, i.pc, reg);
    encode(b, &redirected(decoded, reg));
    b.mark(Flavour::Busy, i.pc, 0);
    match value {
        Value::Register(code) => capture(b, decoded, code),
        Value::Number(number) => b.emit.save_imm64(offset_of!(Thread, old), number as u64),
        Value::Memory | Value::OldAndNew => {}
    }
    b.emit.load(reg, slot.offset());
    order::record(b, site, flags_out);
    let back = b.emit.at;

    let (pc, decoded) = (i.pc, *decoded);
    b.tail(move |b| {
        // Not in the largest range: if there are others, look at each.
        let here = b.emit.at;
        b.emit.patch(outside, here);
        b.emit.cmp_absolute_byte(pm::RANGE_COUNT.as_ptr() as u64, 1);
        let only = b.emit.jcc(6); // jbe
        b.emit.absolute(0x03, reg, lo);
        b.emit.save(offset_of!(Thread, ea), reg);
        on_engine_stack(b, trampoline!(is_pm));
        let yes = b.emit.jcc(2); // jc
        b.emit.patch(yes, is_pm);
        // Ordinary memory.
        let here = b.emit.at;
        b.emit.patch(only, here);
        b.emit.save_imm(offset_of!(Thread, last_path), NO_PATH as u32);
        b.emit.load(reg, slot.offset());
        if flags_in {
            restore_flags(b, slot);
        }
        match slot {
            Spill::T0 => {
                b.mark(Flavour::Clean, pc, 0);
                b.copy(i);
                b.mark(Flavour::Clean, i.next(), 0);
            }
            // Part of a longer sequence: the access alone.
            Spill::T3 => encode(b, &decoded),
        }
        let jump = b.emit.jmp();
        b.emit.patch(jump, back);
        b.mark(Flavour::Busy, pc, 0);
        // Several tasks: the order lock is held from before the store until it is recorded.
        let here = b.emit.at;
        b.emit.patch(many, here);
        on_engine_stack(b, trampoline!(take_order));
        if crate::flow::on() {
            // What led to this store comes before what others do who see it.
            on_engine_stack(b, trampoline!(flow));
        }
        let jump = b.emit.jmp();
        b.emit.patch(jump, ordered);
    });
}

/// The ordinary store that writes what this non-temporal one writes. Reading a line back right after a non-temporal store
/// waits for the write-combining buffer; storing the register once more, to a place of ours, does not.
fn cached_twin(code: Code) -> Option<Code> {
    Some(match code {
        Code::Movnti_m32_r32 | Code::Movdiri_m32_r32 => Code::Mov_rm32_r32,
        Code::Movnti_m64_r64 | Code::Movdiri_m64_r64 => Code::Mov_rm64_r64,
        Code::Movntq_m64_mm => Code::Movq_mmm64_mm,
        Code::Movntps_m128_xmm | Code::Movntpd_m128_xmm | Code::Movntdq_m128_xmm => Code::Movups_xmmm128_xmm,
        Code::VEX_Vmovntps_m128_xmm | Code::VEX_Vmovntpd_m128_xmm | Code::VEX_Vmovntdq_m128_xmm => {
            Code::VEX_Vmovups_xmmm128_xmm
        }
        Code::VEX_Vmovntps_m256_ymm | Code::VEX_Vmovntpd_m256_ymm | Code::VEX_Vmovntdq_m256_ymm => {
            Code::VEX_Vmovups_ymmm256_ymm
        }
        Code::EVEX_Vmovntps_m128_xmm | Code::EVEX_Vmovntpd_m128_xmm | Code::EVEX_Vmovntdq_m128_xmm => {
            Code::EVEX_Vmovups_xmmm128_k1z_xmm
        }
        Code::EVEX_Vmovntps_m256_ymm | Code::EVEX_Vmovntpd_m256_ymm | Code::EVEX_Vmovntdq_m256_ymm => {
            Code::EVEX_Vmovups_ymmm256_k1z_ymm
        }
        Code::EVEX_Vmovntps_m512_zmm | Code::EVEX_Vmovntpd_m512_zmm | Code::EVEX_Vmovntdq_m512_zmm => {
            Code::EVEX_Vmovups_zmmm512_k1z_zmm
        }
        _ => return None,
    })
}

/// Stores the instruction's source into `Thread::old`.
fn capture(b: &mut Builder<'_>, decoded: &Decoded, code: Code) {
    let mut new = *decoded;
    new.set_code(code);
    new.set_memory_base(Register::None);
    new.set_memory_index(Register::None);
    new.set_memory_index_scale(1);
    new.set_memory_displacement64(offset_of!(Thread, old) as u64);
    new.set_memory_displ_size(4);
    new.set_segment_prefix(Register::GS);
    encode(b, &new);
}

/// The bytes that a read-modify-write is about to replace, into `Thread::old`.
fn keep_old(b: &mut Builder<'_>, reg: Reg, size: u32) {
    let old = offset_of!(Thread, old);
    b.emit.save(offset_of!(Thread, t1), RAX);
    // [reg] needs a disp8 with rbp.
    let operand = |b: &mut Builder<'_>, opcode: &[u8], disp: u8| {
        b.emit.bytes(opcode);
        b.emit.bytes(&[0x40 | reg, disp]);
    };
    match size {
        1 => operand(b, &[0x0f, 0xb6], 0),
        2 => operand(b, &[0x0f, 0xb7], 0),
        4 => operand(b, &[0x8b], 0),
        _ => operand(b, &[0x48, 0x8b], 0),
    }
    b.emit.save(old, RAX);
    if size == 16 {
        operand(b, &[0x48, 0x8b], 8);
        b.emit.save(old + 8, RAX);
    }
    b.emit.load(RAX, offset_of!(Thread, t1));
}
