//@ build: rust
//@ cflags: -O
//@ needs: clwb
// A fence before the flush, where nothing is pending yet, beside the one behind it.
include!("../pm.rs");
use std::arch::x86_64::_mm_sfence;

fn main() {
    let value: &mut u64 = create();
    *value = 1;
    // SAFETY: a fence changes no memory.
    unsafe { _mm_sfence() }; //~ FP0204
    clwb!(*value);
    sfence!();
}
