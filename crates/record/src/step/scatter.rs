//! Scatters, taken apart by hand: the decoder knows only some of them, and with wrong index registers.
//!
//! `EVEX.66.0F38 A0..A3 /r /vsib` (SDM vol. 2, VPSCATTERDD and kin): A0 and A2 have doubleword indices, A1 and A3
//! quadword ones; W gives the size of an element; `aaa` is the mask. The memory operand without its index is that of
//! the form which the decoder knows.

use yaxpeax_x86::long_mode::{InstDecoder, Instruction};

use super::effect::Span;
use super::operand::memory_operand;
use super::ptrace::Registers;
use super::xstate::ExtendedState;

#[derive(Debug)]
pub struct Scatter {
    /// Has the same length, base, scale and displacement.
    pub stand_in: Instruction,
    index: u8,
    index_size: u64,
    mask: u8,
    element: u64,
    count: u64,
}

/// The scatter that `code` begins with, if it does.
pub fn decode(code: &[u8]) -> Option<Scatter> {
    let start = code.iter().position(|byte| !matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x67))?;
    let [0x62, p0, p1, p2, opcode @ 0xa0..=0xa3, modrm, sib, ..] = code[start..] else { return None };
    // Map 0F38, prefix 66, a SIB byte.
    if p0 & 7 != 2 || p1 & 3 != 1 || modrm & 7 != 4 || modrm >> 6 == 3 {
        return None;
    }
    let mut known = code.to_vec();
    known[start + 4] = opcode & !2;
    let stand_in = InstDecoder::default().decode_slice(&known).ok()?;
    // X and V' extend the index register's number; both are stored inverted.
    let index = sib >> 3 & 7 | (!p0 >> 6 & 1) << 3 | (!p2 >> 3 & 1) << 4;
    let index_size = if opcode & 1 == 0 { 4 } else { 8 };
    let element = if p1 & 0x80 != 0 { 8 } else { 4 };
    let vector = 16 << (p2 >> 5 & 3);
    Some(Scatter { stand_in, index, index_size, mask: p2 & 7, element, count: vector / element.max(index_size) })
}

impl Scatter {
    /// The elements that it will store, in element order (rule 3).
    pub fn stores(&self, registers: &Registers, extended: &ExtendedState) -> Vec<Span> {
        let Some(memory) = memory_operand(&self.stand_in) else { return Vec::new() };
        let indices = extended.vector(self.index);
        let mask = extended.mask(self.mask);
        let span = |i: u64| {
            let at = (i * self.index_size) as usize;
            let index = if self.index_size == 4 {
                i64::from(i32::from_le_bytes(indices[at..at + 4].try_into().expect("4 bytes")))
            } else {
                i64::from_le_bytes(indices[at..at + 8].try_into().expect("8 bytes"))
            };
            let scaled = index.wrapping_mul(memory.scale.into()).cast_unsigned();
            Span { address: memory.address_with_index(&self.stand_in, registers, scaled), len: self.element }
        };
        (0..self.count).filter(|i| mask >> i & 1 != 0).map(span).collect()
    }
}
