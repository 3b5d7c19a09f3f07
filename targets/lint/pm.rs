// What the Rust programs need: a mapped pool and the flush that `core::arch` lacks. The C library is declared by hand, so
// that `rustc` alone builds them.
use std::ffi::{CString, c_char, c_int, c_void};

unsafe extern "C" {
    fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int;
    fn ftruncate(fd: c_int, len: i64) -> c_int;
    fn mmap(addr: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
}

/// A fresh pool at the path in the first argument: O_RDWR|O_CREAT|O_TRUNC, PROT_READ|PROT_WRITE, MAP_SHARED.
fn create<T>() -> &'static mut T {
    let path = std::env::args().nth(1).expect("the pool's path is missing");
    let path = CString::new(path).expect("a path without NUL");
    // SAFETY: plain system calls; `path` outlives the call, and the mapping is fresh, zeroed and never unmapped.
    unsafe {
        let fd = open(path.as_ptr(), 0o1102, 0o644);
        assert!(fd >= 0 && ftruncate(fd, 65536) == 0);
        let pm = mmap(std::ptr::null_mut(), 65536, 3, 1, fd, 0);
        assert!(pm as isize != -1);
        &mut *pm.cast()
    }
}

macro_rules! clwb {
    ($place:expr) => {
        // SAFETY: a flush changes no memory.
        unsafe { std::arch::asm!("clwb [{}]", in(reg) &raw const $place, options(nostack, preserves_flags)) }
    };
}

macro_rules! sfence {
    () => {
        // SAFETY: a fence changes no memory.
        unsafe { std::arch::asm!("sfence", options(nostack, preserves_flags)) }
    };
}
