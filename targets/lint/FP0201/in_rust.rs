//@ build: rust
//@ cflags: -O
//@ needs: clwb
// A guard that flushes when it is dropped, beside an explicit flush.
include!("../pm.rs");

struct Guard<'a>(&'a mut u64);

impl Guard<'_> {
    #[inline(never)]
    fn flush(&self) {
        clwb!(*self.0);
    }
}

impl Drop for Guard<'_> {
    #[inline(never)]
    fn drop(&mut self) {
        clwb!(*self.0); //~ FP0201
        sfence!();
    }
}

fn main() {
    let value: &mut u64 = create();
    let guard = Guard(value);
    *guard.0 = 1;
    guard.flush();
}
