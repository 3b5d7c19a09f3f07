//@ build: rust
//@ cflags: -O
// A fence completes the non-temporal stores.
include!("../pm.rs");
use std::arch::x86_64::_mm_stream_si64;

unsafe extern "C" {
    fn _exit(code: c_int) -> !;
}

fn main() {
    let words: &mut [i64; 8] = create();
    for word in words.iter_mut() {
        // SAFETY: a reference to memory of that size; SSE2 is part of x86-64.
        unsafe { _mm_stream_si64(word, 7) };
    }
    sfence!();
    // SAFETY: ends the process.
    unsafe { _exit(0) }
}
