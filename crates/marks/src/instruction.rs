//! The marks themselves: `nopl` with a displacement that nobody else uses (`fpOB`, `fpOE`), the same as in `marks/fencepost.h`.

/// An operation begins. Operations do not nest.
#[inline(always)]
pub fn begin() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a long NOP reads and writes nothing (SDM vol. 2, NOP). Without `nomem` no store moves past it.
    unsafe {
        core::arch::asm!(".byte 0x0f, 0x1f, 0x80, 0x66, 0x70, 0x4f, 0x42", options(nostack, preserves_flags));
    }
}

/// The operation is over: from now on it must have happened.
#[inline(always)]
pub fn end() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `begin`.
    unsafe {
        core::arch::asm!(".byte 0x0f, 0x1f, 0x80, 0x66, 0x70, 0x4f, 0x45", options(nostack, preserves_flags));
    }
}
