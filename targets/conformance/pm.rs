// What the Rust programs need: map a pool. The C library is declared by hand, so that `rustc` alone builds them.
use std::ffi::{CString, c_char, c_int, c_void};

unsafe extern "C" {
    fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int;
    fn ftruncate(fd: c_int, len: i64) -> c_int;
    fn mmap(addr: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
}

fn argument(n: usize) -> String {
    std::env::args().nth(n).expect("the pool's path is missing")
}

/// A fresh pool at `path`, mapped whole: O_RDWR|O_CREAT|O_TRUNC, PROT_READ|PROT_WRITE, MAP_SHARED.
fn create(path: &str, len: usize) -> *mut u8 {
    let path = CString::new(path).expect("a path without NUL");
    // SAFETY: plain system calls; `path` outlives the call and a mapping at a free address harms nothing.
    unsafe {
        let fd = open(path.as_ptr(), 0o1102, 0o644);
        assert!(fd >= 0 && ftruncate(fd, len as i64) == 0);
        let pm = mmap(std::ptr::null_mut(), len, 3, 1, fd, 0);
        assert!(pm as isize != -1);
        pm.cast()
    }
}
