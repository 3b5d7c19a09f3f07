// A persistent map asked through operations, for the Rust programs: `i KEY VALUE`, `u KEY VALUE`, `d KEY`, `g KEY`, `n`, `p`.
// Stores to the pool stand in the programs themselves, never in here (but for the magic number).
use std::ffi::{CString, c_char, c_int, c_void};
use std::io::{BufRead, Write};

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

/// A bug in the set-up, which every program can have beside its own: a mark behind the pool that is never flushed, and without which
/// the pool is not opened.
const SETUP_BUG: u32 = 30;

/// The first word of a pool that has been created whole.
const MAGIC: u64 = 0x74736f7065636e66;

/// A field with a line of its own.
#[repr(C, align(64))]
struct Line<T>(T);

enum Answer {
    Done,
    Exists,
    Missing,
    Full,
}

trait Map {
    fn insert(&mut self, key: u64, value: u64) -> Answer;
    fn update(&mut self, key: u64, value: u64) -> Answer;
    fn erase(&mut self, key: u64) -> Answer;
    fn find(&self, key: u64) -> Option<u64>;
    fn count(&self) -> u64;
}

include!("../../crash/include/flush.rs");

/// A store that the compiler neither drops, merges nor moves past another. The line is that of the program.
#[collapse_debuginfo(yes)]
macro_rules! put {
    ($place:expr, $value:expr) => {{
        let value = $value;
        // SAFETY: a field of the mapped pool.
        unsafe { std::ptr::write_volatile(&raw mut $place, value) }
    }};
}

/// The pool at `path`, made if it is missing, and whether it must be created. What no creation has finished is all zeros but for
/// what it stores, so that it can be begun again.
fn open_pool<T>(path: &str) -> (*mut T, bool) {
    let end = size_of::<T>().next_multiple_of(64);
    let bytes = if has_bug(SETUP_BUG) { end + 64 } else { size_of::<T>() };
    let path = CString::new(path).expect("a path without NUL");
    // SAFETY: plain system calls, O_RDWR|O_CREAT; `path` outlives them.
    let pool = unsafe {
        let fd = open(path.as_ptr(), 0o102, 0o644);
        if fd < 0 || (lseek(fd, 0, 2) < bytes as i64 && ftruncate(fd, bytes as i64) != 0) {
            std::process::exit(2);
        }
        // PROT_READ|PROT_WRITE, MAP_SHARED.
        mmap(std::ptr::null_mut(), bytes, 3, 1, fd, 0)
    };
    if pool as isize == -1 {
        std::process::exit(2);
    }
    // SAFETY: the mapping is at least a word long.
    let magic = unsafe { pool.cast::<u64>().read_volatile() };
    if has_bug(SETUP_BUG) {
        // SAFETY: the mapping is a line longer than the pool.
        let mark = unsafe { pool.cast::<u8>().add(end).cast::<u64>() };
        // SAFETY: the same.
        match (magic == MAGIC, unsafe { mark.read_volatile() }) {
            // SAFETY: the same.
            (false, _) => unsafe { mark.write_volatile(MAGIC) },
            (true, MAGIC) => {}
            (true, _) => {
                eprintln!("the pool was cut off");
                std::process::exit(1);
            }
        }
    }
    (pool.cast(), magic != MAGIC)
}

/// The last store of a creation.
fn created<T>(pool: *mut T) {
    // SAFETY: the mapping is at least a word long.
    unsafe { pool.cast::<u64>().write_volatile(MAGIC) };
    persist(pool.cast::<u64>(), 8);
}

/// Spreads numbers. Not inlined: it must never take the line of a store.
#[inline(never)]
#[allow(dead_code, reason = "not every map is a hash table")]
fn hash(key: u64) -> u64 {
    let x = (key + 1).wrapping_mul(0x9e3779b97f4a7c15);
    let x = (x ^ x >> 32).wrapping_mul(0xd6e8feb86659fd93);
    x ^ x >> 32
}

fn answer(map: &mut impl Map, line: &str) -> String {
    let mut words = line.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let (key, value) = (number(), number());
    let done = match kind {
        "i" => map.insert(key, value),
        "u" => map.update(key, value),
        "d" => map.erase(key),
        "g" => return map.find(key).map_or("missing".to_owned(), |value| value.to_string()),
        "n" => return map.count().to_string(),
        _ => return "what?".to_owned(),
    };
    match done {
        Answer::Done => "ok",
        Answer::Exists => "exists",
        Answer::Missing => "missing",
        Answer::Full => "full",
    }
    .to_owned()
}

/// Answers operations until there are no more.
fn serve(map: &mut impl Map) {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let answer = answer(map, &line);
        if writeln!(out, "{answer}").is_err() {
            break;
        }
    }
}

fn pool_path() -> String {
    std::env::args().nth(1).unwrap_or_else(|| std::process::exit(2))
}
