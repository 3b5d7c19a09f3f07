//! Instructions that only move: bytes keep their expressions, and bytes that are not followed stay so.

use iced_x86::{Code, OpKind, Register};

use crate::frame::{Byte, Concrete, Done, InstructionFrame, WIDEST};

/// `mov`, `movzx`, vector moves: the source, with zeros above.
pub fn plain(f: &mut InstructionFrame<'_>) -> Done {
    if f.instruction.has_op_mask() {
        return masked(f);
    }
    let mut from = match f.instruction.op_kind(1) {
        OpKind::Register | OpKind::Memory => f.bytes(1)?,
        // An immediate.
        _ => Vec::new(),
    };
    let len = match f.instruction.op0_kind() {
        OpKind::Memory => f.memory.len(),
        _ => f.instruction.op0_register().size(),
    };
    let registers = f.instruction.op0_kind() == OpKind::Register && f.instruction.op1_kind() == OpKind::Register;
    // `kmovb` moves a byte of a register of eight, `movq [m], xmm` half of it.
    let used = match f.instruction.code() {
        Code::VEX_Kmovb_kr_km8 | Code::VEX_Kmovb_m8_kr | Code::VEX_Kmovb_kr_r32 | Code::VEX_Kmovb_r32_kr => 1,
        Code::VEX_Kmovw_kr_km16 | Code::VEX_Kmovw_m16_kr | Code::VEX_Kmovw_kr_r32 | Code::VEX_Kmovw_r32_kr => 2,
        Code::VEX_Kmovd_kr_km32 | Code::VEX_Kmovd_m32_kr | Code::VEX_Kmovd_kr_r32 | Code::VEX_Kmovd_r32_kr => 4,
        Code::Movq_xmm_xmmm64
        | Code::VEX_Vmovq_xmm_xmmm64
        | Code::EVEX_Vmovq_xmm_xmmm64
        | Code::Movq_xmmm64_xmm
        | Code::VEX_Vmovq_xmmm64_xmm
        | Code::EVEX_Vmovq_xmmm64_xmm => 8,
        // Between registers these two merge.
        Code::Movss_xmm_xmmm32 | Code::Movss_xmmm32_xmm if registers => return merge(f, &from[..4]),
        Code::Movsd_xmm_xmmm64 | Code::Movsd_xmmm64_xmm if registers => return merge(f, &from[..8]),
        _ if f.instruction.op_count() > 2 => return Err(Concrete::Operands),
        _ => WIDEST,
    };
    from.truncate(used);
    from.resize(len, None);
    f.set_bytes(0, &from)
}

fn merge(f: &mut InstructionFrame<'_>, bytes: &[Byte]) -> Done {
    f.registers.set(f.instruction.op0_register(), 0, bytes);
    Ok(())
}

/// EVEX moves under a mask that is not followed.
fn masked(f: &mut InstructionFrame<'_>) -> Done {
    let mask = f.instruction.op_mask();
    if f.registers.bytes(mask).iter().any(Option::is_some) || f.instruction.op_count() > 2 {
        return Err(Concrete::Operands);
    }
    let element = f.instruction.memory_size().element_size();
    let element = if element == 0 { element_of(f.instruction.code()) } else { element };
    let mut from = f.bytes(1)?;
    if f.instruction.op0_kind() == OpKind::Memory {
        from.truncate(f.memory.len());
    }
    let before = f.bytes(0)?;
    let merging = f.instruction.merging_masking();
    let mut after = Vec::with_capacity(from.len());
    for (at, &byte) in from.iter().enumerate() {
        let number = at / element.max(1);
        let bits = f.known.register(mask, number / 8).ok_or(Concrete::NotLogged)?;
        after.push(if bits >> (number % 8) & 1 == 1 {
            byte
        } else if merging {
            before.get(at).copied().flatten()
        } else {
            None
        });
    }
    f.set_bytes(0, &after)
}

fn element_of(code: Code) -> usize {
    use iced_x86::Mnemonic as M;
    match code.mnemonic() {
        M::Vmovdqu8 => 1,
        M::Vmovdqu16 => 2,
        M::Vmovdqu64 | M::Vmovdqa64 | M::Vmovupd | M::Vmovapd => 8,
        _ => 4,
    }
}

/// `movsx`, `movsxd`.
pub fn sign(f: &mut InstructionFrame<'_>) -> Done {
    let (to, from) = (f.width(0)?, f.width(1)?);
    let a = f.value(1, from)?;
    let result = f.arena.sext(a, to);
    f.set(0, result)
}

pub fn condition(f: &mut InstructionFrame<'_>) -> Done {
    let condition = f.tested()?;
    match f.arena.number(condition) {
        Some(1) => {
            let bytes = f.bytes(1)?;
            f.set_bytes(0, &bytes)
        }
        Some(_) => {
            // The upper half is cleared all the same.
            let bytes = f.bytes(0)?;
            f.set_bytes(0, &bytes)
        }
        None => {
            let width = f.width(0)?;
            let (no, yes) = (f.value(0, width)?, f.value(1, width)?);
            let result = f.arena.ite(condition, yes, no);
            f.set(0, result)
        }
    }
}

pub fn exchange(f: &mut InstructionFrame<'_>) -> Done {
    let (a, b) = (f.bytes(0)?, f.bytes(1)?);
    f.set_bytes(0, &b)?;
    f.set_bytes(1, &a)
}

/// `bswap`, `movbe`.
pub fn reverse(f: &mut InstructionFrame<'_>) -> Done {
    let mut bytes = f.bytes(if f.instruction.op_count() == 1 { 0 } else { 1 })?;
    // Undefined for two bytes of a register.
    if bytes.len() == 2 && f.instruction.op_count() == 1 {
        return Err(Concrete::Operands);
    }
    bytes.reverse();
    f.set_bytes(0, &bytes)
}

/// `movlps`, `movhps` and kin between memory and a half of a register; `movlhps`, `movhlps`.
pub fn half(f: &mut InstructionFrame<'_>, high: bool) -> Done {
    let i = f.instruction;
    if i.op0_kind() == OpKind::Memory {
        let bytes = f.bytes(1)?;
        let from = if high { 8 } else { 0 };
        return f.set_bytes(0, &bytes[from..from + 8]);
    }
    let last = i.op_count() - 1;
    let source = f.bytes(last)?;
    let to: Register = i.op0_register();
    let mut after = f.bytes(if i.op_count() == 3 { 1 } else { 0 })?;
    let at = if high { 8 } else { 0 };
    // `movhlps` takes the upper half of a register.
    let piece = if i.op_kind(last) == OpKind::Register && !high { &source[8..16] } else { &source[..8] };
    after[at..at + 8].copy_from_slice(piece);
    after.truncate(16);
    f.set_vector(to, &after);
    Ok(())
}
