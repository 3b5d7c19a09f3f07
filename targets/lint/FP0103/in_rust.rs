//@ build: rust
//@ cflags: -O
// Non-temporal stores by `core::arch`, and no fence.
include!("../pm.rs");
use std::arch::x86_64::_mm_stream_si64;

unsafe extern "C" {
    fn _exit(code: c_int) -> !;
}

fn main() {
    let words: &mut [i64; 8] = create();
    for word in words.iter_mut() {
        // SAFETY: a reference to memory of that size; SSE2 is part of x86-64.
        unsafe { _mm_stream_si64(word, 7) }; //~ FP0103
    }
    // SAFETY: ends the process. The library's way out executes locked instructions, which are fences.
    unsafe { _exit(0) }
}
