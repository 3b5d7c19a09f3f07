// Flushes and fences, for all Rust programs of `targets`.

/// Starts the write-back of every line of the range.
#[inline(always)]
fn flush<T>(start: *const T, bytes: usize) {
    let mut line = start as usize & !63;
    while line < start as usize + bytes {
        // SAFETY: a flush changes no memory.
        unsafe { std::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)) };
        line += 64;
    }
}

#[inline(always)]
fn fence() {
    // SAFETY: a fence changes no memory.
    unsafe { std::arch::asm!("sfence", options(nostack, preserves_flags)) };
}

#[inline(always)]
fn persist<T>(start: *const T, bytes: usize) {
    flush(start, bytes);
    fence();
}
