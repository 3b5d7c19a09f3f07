//@ build: rust
//@ cflags: -O
//@ needs: clwb
// The store, its flush, one fence.
include!("../pm.rs");
use std::arch::x86_64::_mm_sfence;

fn main() {
    let value: &mut u64 = create();
    *value = 1;
    clwb!(*value);
    // SAFETY: a fence changes no memory.
    unsafe { _mm_sfence() };
}
