//@ build: rust
//@ cflags: -O -g
// Panics that unwind through frames writing PM, caught, twice.
include!("../pm.rs");

struct Mark(*mut u32, u32);

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: the pointer is into the pool, which stays mapped.
        unsafe { self.0.write_volatile(self.1) }
    }
}

#[inline(never)]
fn descend(pm: *mut u32, depth: u32) {
    // SAFETY: `depth` is at most 9, the pool has 1024 words.
    let _mark = Mark(unsafe { pm.add(depth as usize) }, depth + 1);
    if depth == 9 {
        std::panic::resume_unwind(Box::new(depth));
    }
    descend(pm, depth + 1);
}

fn main() {
    let pm = create(&argument(1), 4096).cast::<u32>();
    for round in 0..2 {
        // SAFETY: as above.
        let words = unsafe { pm.add(16 * round) };
        let depth = std::panic::catch_unwind(|| descend(words, round as u32)).expect_err("it panics");
        assert_eq!(depth.downcast_ref::<u32>(), Some(&9));
    }
}
