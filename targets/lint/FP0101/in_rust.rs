//@ build: rust
//@ cflags: -O
//@ needs: clwb
// The same in Rust: the second update of the counter is not persisted.
include!("../pm.rs");

#[repr(C, align(64))]
struct Header {
    magic: u64,
    count: u64,
}

impl Header {
    #[inline(never)]
    fn count_one(&mut self) {
        // SAFETY: a reference to a field of the pool; volatile, so that both updates happen.
        unsafe { (&raw mut self.count).write_volatile(self.count + 1) } //~ FP0101
    }
}

fn main() {
    let header: &mut Header = create();
    header.magic = 0x706f_6f6c;
    header.count_one();
    clwb!(*header);
    sfence!();
    header.count_one();
}
