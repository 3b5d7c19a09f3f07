//@ build: rust
//@ cflags: -O
//@ needs: clwb
// Only the guard flushes.
include!("../pm.rs");

struct Guard<'a>(&'a mut u64);

impl Drop for Guard<'_> {
    #[inline(never)]
    fn drop(&mut self) {
        clwb!(*self.0);
        sfence!();
    }
}

fn main() {
    let value: &mut u64 = create();
    let guard = Guard(value);
    *guard.0 = 1;
}
