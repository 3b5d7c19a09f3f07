//! Instructions that the decoder does not know: can they touch memory, and where?
//!
//! `kmov*` between mask registers and memory is the one family that stores; everything else must have register
//! operands only, or the process must have no pool mapped.

use yaxpeax_x86::long_mode::{InstDecoder, Instruction};

/// Whether the ModRM byte, which stands right behind the opcode in every encoding, names two registers.
/// No instruction of that form stores to memory, but for `maskmov*`, `clzero` and kin, which the decoder knows.
pub fn has_register_operands(bytes: &[u8]) -> bool {
    let prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f);
    let body = bytes.iter().position(|byte| !prefix(byte)).map_or(&[][..], |start| &bytes[start..]);
    let modrm = match body {
        // VEX in two and three bytes, EVEX, then the opcode.
        [0xc5, _, _, modrm, ..] => modrm,
        [0xc4, _, _, _, modrm, ..] => modrm,
        [0x62, _, _, _, _, modrm, ..] => modrm,
        [0x0f, 0x38 | 0x3a, _, modrm, ..] => modrm,
        [0x0f, _, modrm, ..] => modrm,
        [_, modrm, ..] => modrm,
        _ => return false,
    };
    modrm >> 6 == 3
}

/// A `kmov` with memory.
#[derive(Debug)]
pub struct MaskMove {
    /// An instruction of the same length with the same memory operand (`vmovups`), which the decoder knows.
    pub stand_in: Instruction,
    pub bytes: u64,
    pub stores: bool,
}

/// `VEX.L0.0F 90/91 /r`: the size comes from W and pp (SDM vol. 2, KMOVW/KMOVB/KMOVQ/KMOVD).
pub fn mask_move(code: &[u8]) -> Option<MaskMove> {
    let start = code.iter().position(|byte| !matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x67))?;
    let (payload_at, opcode_at) = match code[start..] {
        [0xc5, _, 0x90 | 0x91, ..] => (start + 1, start + 2),
        [0xc4, map, _, 0x90 | 0x91, ..] if map & 0x1f == 1 => (start + 2, start + 3),
        _ => return None,
    };
    let wide = opcode_at - payload_at == 1 && payload_at == start + 2 && code[payload_at] & 0x80 != 0;
    let bytes = match (code[payload_at] & 3, wide) {
        (0, false) => 2,
        (1, false) => 1,
        (0, true) => 8,
        (1, true) => 4,
        _ => return None,
    };
    let stores = code[opcode_at] == 0x91;
    let mut same_operand = code.to_vec();
    same_operand[payload_at] &= !3;
    same_operand[opcode_at] = 0x11;
    let stand_in = InstDecoder::default().decode_slice(&same_operand).ok()?;
    Some(MaskMove { stand_in, bytes, stores })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_modrm_byte() {
        assert!(has_register_operands(&[0xc5, 0xfb, 0x93, 0xc0]));
        assert!(!has_register_operands(&[0xc5, 0xf8, 0x91, 0x00]));
        assert!(has_register_operands(&[0xf3, 0x48, 0x0f, 0xae, 0xc0]));
        assert!(!has_register_operands(&[0x62, 0xf1, 0x7c, 0x48, 0x11, 0x07]));
        assert!(!has_register_operands(&[]));
    }

    #[test]
    fn sizes_of_mask_moves() {
        let size = |code: &[u8]| mask_move(code).map(|found| (found.bytes, found.stores));
        assert_eq!(size(&[0xc5, 0xf8, 0x91, 0x07]), Some((2, true)));
        assert_eq!(size(&[0xc5, 0xf9, 0x91, 0x07]), Some((1, true)));
        assert_eq!(size(&[0xc4, 0xe1, 0xf8, 0x91, 0x07]), Some((8, true)));
        assert_eq!(size(&[0xc4, 0xe1, 0xf9, 0x90, 0x07]), Some((4, false)));
        assert_eq!(size(&[0xc5, 0xf8, 0x29, 0x07]), None);
    }
}
