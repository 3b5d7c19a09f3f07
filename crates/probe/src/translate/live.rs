//! Decides whether the arithmetic flags are needed. Looks ahead in the program's own code; if in doubt, they are.

use isa::scan::{Class, FlagUse, Scan, scan};

use super::code;

/// Instructions to look at before giving up.
const AHEAD: usize = 24;

/// May the flags as they are before `pc` still be read?
pub fn flags_before(mut pc: u64) -> bool {
    for _ in 0..AHEAD {
        let Some(bytes) = code::bytes(pc) else { return true };
        let Some(Scan { len, class, flags, imm_at, .. }) = scan(&bytes) else { return true };
        match flags {
            FlagUse::Kills => return false,
            FlagUse::Reads => return true,
            FlagUse::Keeps | FlagUse::Mixed => {}
        }
        match class {
            Class::JmpRel | Class::CallRel => pc = relative_target(pc, &bytes, len, imm_at),
            Class::Plain
            | Class::Locked
            | Class::Sfence
            | Class::Mfence
            | Class::Lfence
            | Class::Clflush
            | Class::Clflushopt
            | Class::Clwb
            | Class::Cldemote => pc += len as u64,
            _ => return true,
        }
    }
    true
}

/// Where a direct branch at `pc` goes.
pub fn relative_target(pc: u64, bytes: &[u8], len: u8, imm_at: u8) -> u64 {
    let at = imm_at as usize;
    let distance = if len as usize - at == 1 {
        bytes[at] as i8 as i64
    } else {
        i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as i64
    };
    pc.wrapping_add(len as u64).wrapping_add_signed(distance)
}
