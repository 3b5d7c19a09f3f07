//@ build: rust
//@ cflags: -O -C target-feature=+avx2
//@ needs: avx2
// Slices, sorting, formatting and iterators whose results land in PM.
include!("../pm.rs");
use std::io::Write as _;

fn main() {
    let pm = create(&argument(1), 65536);
    // SAFETY: the pool is mapped for the whole run and nothing else refers to it.
    let (bytes, words) = unsafe {
        (std::slice::from_raw_parts_mut(pm, 4096), std::slice::from_raw_parts_mut(pm.add(8192).cast::<u64>(), 300))
    };
    let mut state = 1u64;
    for w in words.iter_mut() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *w = state >> 40;
    }
    words.sort_unstable();
    words[10..200].reverse();
    words.rotate_left(17);
    words.copy_within(0..50, 60);
    write!(&mut bytes[100..], "{:>20}|{:x}|{:?}", "right", 48879, Some(1.5)).expect("it fits");
    bytes[..50].fill(0xa5);
    assert_eq!(&bytes[100..125], b"               right|beef");
}
