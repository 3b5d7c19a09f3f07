//! Vector and mask registers of the program, read while the engine runs.
//!
//! The engine uses only the low halves of xmm0–15 (and has saved them); everything else is still in the processor.
//! Instructions here are executed only after the program itself has used the register, so the processor supports them.

use core::arch::asm;

use crate::thread::Thread;

macro_rules! by_number {
    ($number:expr, $instruction:literal, $prefix:literal, $out:expr, [$($n:literal)*]) => {
        match $number {
            $( $n => asm!(concat!($instruction, " [{}], ", $prefix, stringify!($n)), in(reg) $out, options(nostack)), )*
            other => panic!("vector register {other}"),
        }
    };
}

/// The bytes of vector register `number`, `len` (16, 32 or 64) of them valid.
pub fn read(thread: &Thread, number: u8, len: usize) -> [u8; 64] {
    let mut bytes = [0u8; 64];
    let out = bytes.as_mut_ptr();
    // SAFETY: stores 32 or 64 bytes into `bytes`; plain stores of a vector register change no state.
    unsafe {
        if len > 32 || number >= 16 {
            by_number!(number, "vmovups", "zmm", out, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]);
        } else if len > 16 {
            by_number!(number, "vmovups", "ymm", out, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]);
        }
    }
    if number < 16 {
        bytes[..16].copy_from_slice(&thread.xmm[number as usize].to_le_bytes());
    }
    bytes
}

/// Mask register k`number`. `wide`: more than 16 lanes (needs AVX-512BW, which the instruction then implies).
pub fn read_mask(number: u8, wide: bool) -> u64 {
    let mut value = 0u64;
    let out = &raw mut value;
    // SAFETY: stores 8 or 2 bytes into `value`.
    unsafe {
        if wide {
            by_number!(number, "kmovq", "k", out, [0 1 2 3 4 5 6 7]);
        } else {
            by_number!(number, "kmovw", "k", out, [0 1 2 3 4 5 6 7]);
        }
    }
    value
}

/// MMX register `number` (for `maskmovq`).
pub fn read_mmx(number: u8) -> u64 {
    let mut value = 0u64;
    let out = &raw mut value;
    // SAFETY: stores 8 bytes into `value`; the program is in MMX mode, since it just used the register.
    unsafe { by_number!(number, "movq", "mm", out, [0 1 2 3 4 5 6 7]) }
    value
}
