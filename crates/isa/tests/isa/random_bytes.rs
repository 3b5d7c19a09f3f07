//! Random bytes and random prefixes before random opcodes: scanner, iced and yaxpeax must agree on what is known.

use crate::judge::{Verdict, compare, is_left_out};
use isa::scan::{Class, scan};
use yaxpeax_arch::LengthedInstruction;

/// xorshift64*: a fixed seed, so that a failure repeats.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_le_bytes());
        bytes[8..].copy_from_slice(&self.next().to_le_bytes());
        bytes
    }
    /// Some prefixes, perhaps an escape, then anything.
    fn likely(&mut self) -> [u8; 16] {
        const PREFIXES: [u8; 12] = [0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x64, 0x65, 0x2e, 0x3e, 0x48, 0x41, 0x4f];
        const ESCAPES: [&[u8]; 8] =
            [&[], &[], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a], &[0xc5], &[0xc4, 0xe1], &[0x62, 0xf1]];
        let mut bytes = self.bytes();
        let mut i = 0;
        for _ in 0..self.next() % 5 {
            bytes[i] = PREFIXES[(self.next() % 12) as usize];
            i += 1;
        }
        for &byte in ESCAPES[(self.next() % 8) as usize] {
            bytes[i] = byte;
            i += 1;
        }
        bytes
    }
}

/// `ISA_ROUNDS` asks for a longer run than the smoke run of the tests.
fn rounds() -> u64 {
    std::env::var("ISA_ROUNDS").map_or(400_000, |text| text.parse().expect("ISA_ROUNDS is a number"))
}

fn judge_all(mut next: impl FnMut() -> [u8; 16]) {
    let (rounds, mut agreed) = (rounds(), 0);
    for _ in 0..rounds {
        let bytes = next();
        match compare(&bytes) {
            Verdict::Agreed => {
                agreed += 1;
                second_opinion(&bytes);
                every_part_is_too_short(&bytes);
            }
            Verdict::Invalid => {}
            Verdict::Unknown(instruction) => {
                assert!(is_left_out(&instruction, &bytes), "{:?} is not known: {bytes:02x?}", instruction.code())
            }
        }
    }
    assert!(agreed > rounds / 8, "only {agreed} valid instructions in {rounds} met");
}

fn second_opinion(bytes: &[u8; 16]) {
    let decoder = yaxpeax_x86::amd64::InstDecoder::default();
    if let Ok(instruction) = decoder.decode_slice(&bytes[..15]) {
        let scan = scan(bytes).expect("16 bytes hold any instruction");
        assert_eq!(scan.len as u64, instruction.len().to_const(), "yaxpeax: {:?} {bytes:02x?}", instruction.opcode());
    }
}

fn every_part_is_too_short(bytes: &[u8; 16]) {
    let whole = scan(bytes).expect("16 bytes hold any instruction");
    for short in 0..whole.len as usize {
        assert_eq!(scan(&bytes[..short]), None, "{short} bytes of {:02x?}", &bytes[..whole.len as usize]);
    }
    assert_eq!(scan(&bytes[..whole.len as usize]), Some(whole));
}

#[test]
fn random_bytes() {
    let mut random = Random(0x5eed);
    judge_all(|| random.bytes());
}

#[test]
fn random_prefixes_and_escapes() {
    let mut random = Random(0xfe7c3);
    judge_all(|| random.likely());
}

#[test]
fn fifteen_prefixes_are_too_long() {
    assert_eq!(scan(&[0x66; 16]).map(|scan| scan.class), Some(Class::Unknown));
    assert_eq!(scan(&[0x66; 14]), None);
}
