//! Copies to and from the program's memory, which may not be mapped. A fault in the one instruction that accesses it
//! makes the copy fail instead (the fault handler asks [`recovery`]).

use core::arch::global_asm;

global_asm!(
    // rdi, rsi, rdx as memcpy. rax = bytes not copied.
    ".globl signal_copy",
    "signal_copy:",
    "mov rcx, rdx",
    ".globl signal_copy_access",
    "signal_copy_access:",
    "rep movsb",
    ".globl signal_copy_failed",
    "signal_copy_failed:",
    "mov rax, rcx",
    "ret",
);

unsafe extern "C" {
    fn signal_copy(to: u64, from: u64, len: usize) -> usize;
    fn signal_copy_access();
    fn signal_copy_failed();
}

/// Copies `len` bytes; false if a part of either range cannot be reached (some bytes may then have been copied).
///
/// # Safety
/// Nobody may rely on the old content of `to`, as with any write.
pub unsafe fn copy(to: u64, from: u64, len: usize) -> bool {
    // SAFETY: faults end the copy; the caller vouches for what is overwritten.
    unsafe { signal_copy(to, from, len) == 0 }
}

/// Reads a value of plain data from the program's memory.
pub fn read<T: Copy>(address: u64) -> Option<T> {
    let mut value = core::mem::MaybeUninit::<T>::uninit();
    // SAFETY: fills exactly `value`; callers use types for which every bit pattern is valid.
    unsafe { copy(value.as_mut_ptr() as u64, address, size_of::<T>()).then(|| value.assume_init()) }
}

/// For the fault handler: where to go on if the fault happened here.
pub fn recovery(rip: u64) -> Option<u64> {
    (rip == signal_copy_access as *const () as u64).then_some(signal_copy_failed as *const () as u64)
}
