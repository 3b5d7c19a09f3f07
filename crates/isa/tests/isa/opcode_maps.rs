//! Every opcode of every map, with every mandatory prefix and every ModRM byte, against a full decoder.

use crate::judge::{Verdict, compare, is_left_out};

const PP: [&[u8]; 4] = [&[], &[0x66], &[0xf3], &[0xf2]];
/// After ModRM: a SIB with base and index, and one without base.
const TAILS: [u8; 2] = [0x8c, 0x25];

fn agree_or_left_out(bytes: &[u8; 16]) {
    if let Verdict::Unknown(instruction) = compare(bytes) {
        assert!(is_left_out(&instruction, bytes), "{:?} is not known: {bytes:02x?}", instruction.code());
    }
}

fn each_modrm(head: &[&[u8]]) {
    for modrm in 0..=255 {
        with_modrm(head, modrm);
    }
}

/// Every /digit with one ModRM byte of each form of operand.
fn each_form(head: &[&[u8]]) {
    for digit in 0..8 {
        for form in [0x00, 0x04, 0x05, 0x44, 0x81, 0xc0, 0xc5] {
            with_modrm(head, form | digit << 3);
        }
    }
}

fn with_modrm(head: &[&[u8]], modrm: u8) {
    let mut bytes = [7; 16];
    let mut at = 0;
    for part in head {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    bytes[at] = modrm;
    let tails = if modrm & 7 == 4 { &TAILS[..] } else { &TAILS[..1] };
    for &tail in tails {
        bytes[at + 1] = tail;
        agree_or_left_out(&bytes);
    }
}

#[test]
fn legacy_maps() {
    for escape in [&[][..], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]] {
        for opcode in 0..=255 {
            for prefix in PP {
                each_modrm(&[prefix, escape, &[opcode]]);
                for rex in [&[0x48], &[0x41]] {
                    each_form(&[prefix, rex, escape, &[opcode]]);
                }
            }
        }
    }
}

#[test]
fn legacy_maps_with_lock_address_size_and_gs() {
    for escape in [&[][..], &[0x0f]] {
        for opcode in 0..=255 {
            for prefix in [0xf0, 0x67, 0x65, 0x64] {
                each_form(&[&[prefix], escape, &[opcode]]);
            }
        }
    }
}

#[test]
fn vex_maps() {
    for map in 1..=3u8 {
        for opcode in 0..=255 {
            for pp in 0..4u8 {
                for w in [0, 0x80] {
                    for vvvv_l in [0x78, 0x7c, 0x20] {
                        each_form(&[&[0xc4, 0xe0 | map, w | vvvv_l | pp, opcode]]);
                    }
                }
                if map == 1 {
                    each_form(&[&[0xc5, 0xf8 | pp, opcode]]);
                }
            }
        }
    }
}

#[test]
fn evex_maps() {
    for map in 0..=7u8 {
        for opcode in 0..=255 {
            for pp in 0..4u8 {
                for w in [0, 0x80] {
                    for (vvvv, mask) in [(0x78, 0x48), (0x78, 0x09), (0x20, 0x28)] {
                        each_form(&[&[0x62, 0xf0 | map, w | vvvv | 4 | pp, mask, opcode]]);
                    }
                }
            }
        }
    }
}
