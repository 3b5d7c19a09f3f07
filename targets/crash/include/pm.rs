// What the Rust programs need: a mapped pool, flushes and fences. The C library is declared by hand, so that `rustc` alone
// builds them. Stores stand in the programs themselves, never in here: a guilty line must be a line of the program.
use std::ffi::{CString, c_char, c_int, c_void};

unsafe extern "C" {
    fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int;
    fn ftruncate(fd: c_int, len: i64) -> c_int;
    fn lseek(fd: c_int, offset: i64, whence: c_int) -> i64;
    fn mmap(addr: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
}

/// Which bugs are built in: bits, by the numbers of the bugs. None: the correct twin.
const BUGS: u64 = {
    let digits = env!("BUGS").as_bytes();
    let (mut number, mut i) = (0, 0);
    while i < digits.len() {
        number = number * 10 + (digits[i] - b'0') as u64;
        i += 1;
    }
    number
};

const fn has_bug(number: u32) -> bool {
    BUGS >> number & 1 == 1
}

/// A field with a line of its own.
#[repr(C, align(64))]
struct Line<T>(T);

fn fail(what: &str) -> ! {
    eprintln!("broken: {what}");
    std::process::exit(1);
}

fn map<T>(fd: c_int) -> *mut T {
    // SAFETY: a new mapping; PROT_READ|PROT_WRITE, MAP_SHARED.
    let pool = unsafe { mmap(std::ptr::null_mut(), size_of::<T>(), 3, 1, fd, 0) };
    if pool as isize == -1 {
        fail("cannot map the pool");
    }
    pool.cast()
}

/// A fresh pool of zeros: O_RDWR|O_CREAT|O_TRUNC.
fn create<T>(path: &str) -> *mut T {
    let path = CString::new(path).expect("a path without NUL");
    // SAFETY: plain system calls; `path` outlives them.
    let fd = unsafe { open(path.as_ptr(), 0o1102, 0o644) };
    // SAFETY: as above.
    if fd < 0 || unsafe { ftruncate(fd, size_of::<T>() as i64) } != 0 {
        fail("cannot create the pool");
    }
    map(fd)
}

/// The pool at `path`; none if its creation had not even given it its length.
fn reopen<T>(path: &str) -> Option<*mut T> {
    let path = CString::new(path).expect("a path without NUL");
    // SAFETY: plain system calls; `path` outlives them.
    let (fd, len) = unsafe {
        let fd = open(path.as_ptr(), 2, 0);
        (fd, lseek(fd, 0, 2))
    };
    (fd >= 0 && len >= size_of::<T>() as i64).then(|| map(fd))
}

include!("flush.rs");

/// Stores before it come before stores behind it: within one line that is the order in which they reach PM.
#[inline(always)]
fn in_order() {
    // SAFETY: no instruction at all; the compiler must assume that memory is read.
    unsafe { std::arch::asm!("", options(nostack, preserves_flags)) };
}

/// Words that follow from key and version alone, so that every copy can be checked. Not inlined: the line of a store of its
/// result would be in here.
#[inline(never)]
fn mix(key: u64, version: u64) -> u64 {
    let x = key.wrapping_mul(0x9e3779b97f4a7c15) ^ version.wrapping_mul(0xc2b2ae3d27d4eb4f);
    (x ^ x >> 29).wrapping_mul(0xbf58476d1ce4e5b9) | 1
}

/// `PROG POOL run` or `PROG POOL check`.
fn command(run: fn(&str), check: fn(&str)) {
    let mut args = std::env::args().skip(1);
    match (args.next(), args.next().as_deref()) {
        (Some(path), Some("run")) => run(&path),
        (Some(path), Some("check")) => check(&path),
        _ => std::process::exit(2),
    }
}
