//! Where an instruction's memory operand lies, given the registers before it executes.

use yaxpeax_arch::LengthedInstruction;
use yaxpeax_x86::long_mode::{Instruction, Operand, RegSpec, Segment, register_class as class};

use super::ptrace::Registers;

/// The parts of a memory operand.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOperand {
    base: Option<RegSpec>,
    pub index: Option<RegSpec>,
    pub scale: u8,
    displacement: i64,
    /// `k` register that masks the access, if not `k0`.
    pub mask: Option<u8>,
    /// Which operand of the instruction it is.
    pub position: u8,
}

/// The first memory operand among the explicit ones.
pub fn memory_operand(instruction: &Instruction) -> Option<MemoryOperand> {
    (0..instruction.operand_count()).find_map(|i| parts(instruction.operand(i), i))
}

fn parts(operand: Operand, position: u8) -> Option<MemoryOperand> {
    let plain = |base, index, scale, displacement: i64| MemoryOperand {
        base,
        index,
        scale,
        displacement,
        mask: None,
        position,
    };
    let masked = |mask: RegSpec, operand: MemoryOperand| MemoryOperand {
        mask: (mask.num() != 0).then_some(mask.num()),
        ..operand
    };
    Some(match operand {
        // A 32-bit absolute address exists only with a 67 prefix and is zero-extended then.
        Operand::AbsoluteU32 { addr } => plain(None, None, 1, i64::from(addr)),
        Operand::AbsoluteU64 { addr } => plain(None, None, 1, addr.cast_signed()),
        Operand::MemDeref { base } => plain(Some(base), None, 1, 0),
        Operand::Disp { base, disp } => plain(Some(base), None, 1, disp.into()),
        Operand::MemIndexScale { index, scale } => plain(None, Some(index), scale, 0),
        Operand::MemIndexScaleDisp { index, scale, disp } => plain(None, Some(index), scale, disp.into()),
        Operand::MemBaseIndexScale { base, index, scale } => plain(Some(base), Some(index), scale, 0),
        Operand::MemBaseIndexScaleDisp { base, index, scale, disp } => {
            plain(Some(base), Some(index), scale, disp.into())
        }
        Operand::MemDerefMasked { base, mask } => masked(mask, plain(Some(base), None, 1, 0)),
        Operand::DispMasked { base, disp, mask } => masked(mask, plain(Some(base), None, 1, disp.into())),
        Operand::MemIndexScaleMasked { index, scale, mask } => masked(mask, plain(None, Some(index), scale, 0)),
        Operand::MemIndexScaleDispMasked { index, scale, disp, mask } => {
            masked(mask, plain(None, Some(index), scale, disp.into()))
        }
        Operand::MemBaseIndexScaleMasked { base, index, scale, mask } => {
            masked(mask, plain(Some(base), Some(index), scale, 0))
        }
        Operand::MemBaseIndexScaleDispMasked { base, index, scale, disp, mask } => {
            masked(mask, plain(Some(base), Some(index), scale, disp.into()))
        }
        _ => return None,
    })
}

impl MemoryOperand {
    /// The address, with a general register as index.
    pub fn address(&self, instruction: &Instruction, registers: &Registers) -> u64 {
        let index = self.index.map_or(0, |index| register(registers, index).wrapping_mul(self.scale.into()));
        self.address_with_index(instruction, registers, index)
    }

    /// The address for a given scaled index: an element of a vector index.
    pub fn address_with_index(&self, instruction: &Instruction, registers: &Registers, scaled_index: u64) -> u64 {
        let base = self.base.map_or(0, |base| match base.class() {
            class::RIP | class::EIP => registers.rip + u64::from(length(instruction)),
            _ => register(registers, base),
        });
        let offset = base.wrapping_add(scaled_index).wrapping_add_signed(self.displacement);
        let short = instruction.prefixes.address_size();
        let offset = if short { offset & 0xffff_ffff } else { offset };
        segment_base(instruction.prefixes.segment(), registers).wrapping_add(offset)
    }
}

pub fn length(instruction: &Instruction) -> u32 {
    u32::try_from(instruction.len().to_const()).expect("an instruction has at most 15 bytes")
}

/// Only FS and GS have a base in 64-bit mode.
pub fn segment_base(segment: Segment, registers: &Registers) -> u64 {
    match segment {
        Segment::FS => registers.fs_base,
        Segment::GS => registers.gs_base,
        _ => 0,
    }
}

/// Value of a general register, zero-extended.
pub fn register(registers: &Registers, spec: RegSpec) -> u64 {
    match spec.class() {
        class::Q => whole(registers, spec.num()),
        class::D => whole(registers, spec.num()) & 0xffff_ffff,
        class::W => whole(registers, spec.num()) & 0xffff,
        // Without REX, 4 to 7 are ah, ch, dh and bh.
        class::B if spec.num() >= 4 => whole(registers, spec.num() - 4) >> 8 & 0xff,
        class::B | class::RB => whole(registers, spec.num()) & 0xff,
        _ => 0,
    }
}

fn whole(r: &Registers, number: u8) -> u64 {
    match number {
        0 => r.rax,
        1 => r.rcx,
        2 => r.rdx,
        3 => r.rbx,
        4 => r.rsp,
        5 => r.rbp,
        6 => r.rsi,
        7 => r.rdi,
        8 => r.r8,
        9 => r.r9,
        10 => r.r10,
        11 => r.r11,
        12 => r.r12,
        13 => r.r13,
        14 => r.r14,
        _ => r.r15,
    }
}

/// Writes a general register the way an instruction does: 32-bit results clear the upper half.
pub fn set_register(r: &mut Registers, spec: RegSpec, value: u64) {
    let old = whole(r, spec.num());
    let new = match spec.class() {
        class::Q => value,
        class::D => value & 0xffff_ffff,
        _ => old & !0xffff | value & 0xffff,
    };
    let place = match spec.num() {
        0 => &mut r.rax,
        1 => &mut r.rcx,
        2 => &mut r.rdx,
        3 => &mut r.rbx,
        4 => &mut r.rsp,
        5 => &mut r.rbp,
        6 => &mut r.rsi,
        7 => &mut r.rdi,
        8 => &mut r.r8,
        9 => &mut r.r9,
        10 => &mut r.r10,
        11 => &mut r.r11,
        12 => &mut r.r12,
        13 => &mut r.r13,
        14 => &mut r.r14,
        _ => &mut r.r15,
    };
    *place = new;
}
