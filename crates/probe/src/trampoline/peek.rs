//! Reads words of the program's memory that may not be mapped. The signal handler knows the instructions that may fault and
//! continues at the label behind them.

use core::arch::global_asm;

global_asm!(
    // rax = [rdi], rdx = 1; or rdx = 0 if the address is not readable.
    ".globl trampoline_peek",
    "trampoline_peek:",
    "mov rax, [rdi]",
    "mov edx, 1",
    "ret",
    // [rdi], [rdi + 8] = [rsi], [rsi + 8], rax = 1; or rax = 0 if they are not readable.
    ".globl trampoline_peek_pair",
    "trampoline_peek_pair:",
    "mov rax, [rsi]",
    ".globl trampoline_peek_second",
    "trampoline_peek_second:",
    "mov rdx, [rsi + 8]",
    "mov [rdi], rax",
    "mov [rdi + 8], rdx",
    "mov eax, 1",
    "ret",
    ".globl trampoline_peek_failed",
    "trampoline_peek_failed:",
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
    fn trampoline_peek(address: u64) -> Answer;
    fn trampoline_peek_pair(to: *mut [u64; 2], address: u64) -> u64;
    fn trampoline_peek_second();
    fn trampoline_peek_failed();
}

/// The two words at `address`, if they can be read.
pub fn pair(address: u64) -> Option<[u64; 2]> {
    let mut words = [0; 2];
    // SAFETY: a fault at one of the two loads goes to `trampoline_peek_failed`.
    (unsafe { trampoline_peek_pair(&raw mut words, address) } != 0).then_some(words)
}

/// The word at `address`, if it can be read.
pub fn word(address: u64) -> Option<u64> {
    // SAFETY: a fault at the first instruction goes to `trampoline_peek_failed`.
    let answer = unsafe { trampoline_peek(address) };
    (answer.there != 0).then_some(answer.value)
}

/// For the SIGSEGV/SIGBUS handler: where to go on if the fault happened in `word`.
pub fn recovery(rip: u64) -> Option<u64> {
    let loads = [
        trampoline_peek as *const () as u64,
        trampoline_peek_pair as *const () as u64,
        trampoline_peek_second as *const () as u64,
    ];
    loads.contains(&rip).then_some(trampoline_peek_failed as *const () as u64)
}
