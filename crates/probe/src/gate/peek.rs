//! Reading a word of the program's memory that may not be mapped. The signal handler knows the one instruction that may
//! fault and sends it to the label behind it.

use core::arch::global_asm;

global_asm!(
    // rax = [rdi], rdx = 1; or rdx = 0 if the address is not readable.
    ".globl gate_peek",
    "gate_peek:",
    "mov rax, [rdi]",
    "mov edx, 1",
    "ret",
    ".globl gate_peek_failed",
    "gate_peek_failed:",
    "xor eax, eax",
    "xor edx, edx",
    "ret",
);

#[repr(C)]
struct Answer {
    value: u64,
    there: u64,
}

unsafe extern "C" {
    fn gate_peek(address: u64) -> Answer;
    fn gate_peek_failed();
}

/// The word at `address`, if it can be read.
pub fn word(address: u64) -> Option<u64> {
    // SAFETY: a fault at the first instruction goes to `gate_peek_failed`.
    let answer = unsafe { gate_peek(address) };
    (answer.there != 0).then_some(answer.value)
}

/// For the SIGSEGV/SIGBUS handler: where to go on if the fault happened in `word`.
pub fn recovery(rip: u64) -> Option<u64> {
    (rip == gate_peek as *const () as u64).then_some(gate_peek_failed as *const () as u64)
}
