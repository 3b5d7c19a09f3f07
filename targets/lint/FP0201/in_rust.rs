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
        // Not `clwb!`: the line of an `asm!` in a macro is that of the macro.
        // SAFETY: a flush changes no memory.
        unsafe { std::arch::asm!("clwb [{}]", in(reg) &raw const *self.0, options(nostack, preserves_flags)) }
        sfence!();
    }
}

fn main() {
    let value: &mut u64 = create();
    let guard = Guard(value);
    *guard.0 = 1;
    guard.flush();
} //~ FP0201
