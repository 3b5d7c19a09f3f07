//@ build: rust
//@ cflags: -O
// Atomics of all widths on PM, with the orderings that compile to different instructions.
include!("../pm.rs");
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::*, fence};

fn main() {
    let pm = create(&argument(1), 4096);
    // SAFETY: the pool is mapped for the whole run and nothing else refers to it.
    unsafe {
        let a8 = &*pm.cast::<AtomicU8>();
        let a16 = &*pm.add(2).cast::<AtomicU16>();
        let a32 = &*pm.add(4).cast::<AtomicU32>();
        let a64 = &*pm.add(8).cast::<AtomicU64>();
        let flag = &*pm.add(16).cast::<AtomicBool>();
        a8.fetch_add(200, SeqCst);
        a8.fetch_add(100, Relaxed);
        a16.fetch_or(0x0ff0, AcqRel);
        a16.fetch_nand(0x00ff, SeqCst);
        a32.store(7, Release);
        a32.store(8, SeqCst);
        a32.fetch_max(70, SeqCst);
        assert_eq!(a64.compare_exchange(0, 5, SeqCst, SeqCst), Ok(0));
        assert_eq!(a64.compare_exchange(0, 6, SeqCst, SeqCst), Err(5));
        assert_eq!(a64.swap(9, AcqRel), 5);
        assert!(!flag.swap(true, SeqCst));
        fence(SeqCst);
        assert_eq!((a8.load(SeqCst), a32.load(SeqCst), a64.load(SeqCst)), (44, 70, 9));
    }
}
