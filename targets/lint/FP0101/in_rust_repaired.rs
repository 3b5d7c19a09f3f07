//@ build: rust
//@ cflags: -O
//@ needs: clwb
// Every update of the counter is persisted where it is made.
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
        unsafe { (&raw mut self.count).write_volatile(self.count + 1) }
        clwb!(self.count);
        sfence!();
    }
}

fn main() {
    let header: &mut Header = create();
    header.magic = 0x706f_6f6c;
    header.count_one();
    header.count_one();
}
