//! Which files are behind the three standard descriptors. A run of operations reads and writes them thousands of times, and each time the engine must know whether
//! they are the operations or a pool: the kernel is asked once. And what a run writes is held back, to be written at once.
//!
//! What is behind an open descriptor changes only by `close`, `close_range`, `dup2` and `dup3`. While there are several threads or processes, the kernel is always asked.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wire::recover::{HELD_BYTES, flag};

use super::dispatch::Call;
use super::operations;
use crate::load::user;
use crate::pm::pools::{FileIdentity, Stat};
use crate::recover::notes;
use crate::ring;
use crate::sys::{nr, raw, sys};

const INPUT: i32 = 0;
const OUTPUT: i32 = 1;
const EINTR: i64 = 4;
const NOT_KNOWN: u64 = u64::MAX;

/// As far as the program, alone, has written only there since it was asked for.
static OUTPUT_LEN: AtomicU64 = AtomicU64::new(NOT_KNOWN);

/// Output is held back.
static HOLDS: AtomicBool = AtomicBool::new(false);

struct Known {
    is_known: AtomicBool,
    device: AtomicU64,
    inode: AtomicU64,
}

static STANDARD: [Known; 3] =
    [const { Known { is_known: AtomicBool::new(false), device: AtomicU64::new(0), inode: AtomicU64::new(0) } }; 3];

pub fn is_standard(fd: i32) -> bool {
    (fd as usize) < STANDARD.len()
}

/// The file behind a descriptor, if it is open.
pub fn file_behind(fd: i32) -> Option<FileIdentity> {
    let standard = STANDARD.get(fd as usize).filter(|_| is_alone());
    if let Some(known) = standard.filter(|known| known.is_known.load(Ordering::Relaxed)) {
        let (device, inode) = (known.device.load(Ordering::Relaxed), known.inode.load(Ordering::Relaxed));
        return Some(FileIdentity { device, inode });
    }
    let stat = Stat::of(fd)?;
    if let Some(known) = standard {
        known.device.store(stat.device, Ordering::Relaxed);
        known.inode.store(stat.inode, Ordering::Relaxed);
        known.is_known.store(true, Ordering::Relaxed);
    }
    Some(stat.identity())
}

/// Is there one thread in one process, so that nobody else changes what is behind descriptors?
pub fn is_alone() -> bool {
    ring::control().many_tasks.load(Ordering::Relaxed) == 0
}

/// The program makes this call, which may put another file behind a descriptor, change the output's length or look at it.
pub fn before(call: Call) {
    match call.nr {
        nr::WRITE if call.fd(0) == OUTPUT => return,
        nr::READ | nr::READV if call.fd(0) == INPUT && operations::on_input(INPUT) => return,
        nr::MMAP if call.fd(4) < 0 => return,
        nr::MUNMAP | nr::MPROTECT | nr::MADVISE | nr::BRK | nr::FUTEX | nr::CLOCK_GETTIME => return,
        nr::CLOSE | nr::CLOSE_RANGE | nr::DUP2 | nr::DUP3 => forget(),
        nr::MMAP if operations::is_output(call.fd(4)) => HOLDS.store(false, Ordering::Relaxed),
        _ => {}
    }
    pass_on();
    OUTPUT_LEN.store(NOT_KNOWN, Ordering::Relaxed);
}

/// Nothing is known any more.
pub fn forget() {
    STANDARD.iter().for_each(|known| known.is_known.store(false, Ordering::Relaxed));
    OUTPUT_LEN.store(NOT_KNOWN, Ordering::Relaxed);
}

/// A run begins. What it writes is held back until something could see it: another system call, another process, or the run's end, however it comes about.
pub fn run_begins() {
    forget();
    HOLDS.store(true, Ordering::Relaxed);
}

/// Holds back what this `write` puts out. `None`: the kernel has to do it.
pub fn hold(call: Call) -> Option<i64> {
    if call.nr != nr::WRITE || call.fd(0) != OUTPUT || !HOLDS.load(Ordering::Relaxed) {
        return None;
    }
    let len = call.args[2] as usize;
    if !(is_alone() && len <= HELD_BYTES / 4 && operations::is_output(OUTPUT)) {
        pass_on();
        return None;
    }
    let text = user::copy_in(call.args[1], len as u64).or_else(|| {
        pass_on();
        None
    })?;
    let recovery = &ring::control().recovery;
    if recovery.held_len.load(Ordering::Relaxed) as usize + len > HELD_BYTES {
        pass_on();
    }
    let from = recovery.held_len.load(Ordering::Relaxed) as usize;
    for (held, byte) in recovery.held[from..].iter().zip(&text) {
        held.store(*byte, Ordering::Relaxed);
    }
    recovery.held_len.store((from + len) as u32, Ordering::Release);
    Some(len as i64)
}

/// Writes what is held back. The server does it for a run that has ended.
pub fn pass_on() {
    let recovery = &ring::control().recovery;
    let len = recovery.held_len.swap(0, Ordering::Acquire) as usize;
    let mut done = 0;
    while done < len {
        // SAFETY: these bytes are in the shared memory.
        let wrote = unsafe { raw!(nr::WRITE, OUTPUT, recovery.held[done..].as_ptr(), len - done) };
        if wrote <= 0 && wrote != -EINTR {
            // The program was told that there was room.
            return notes::raise(flag::OUTPUT);
        }
        done += wrote.max(0) as usize;
    }
}

/// The length of the file behind standard output. It is counted as long as the program only writes at its end.
pub fn output_len() -> u64 {
    const SEEK_CUR: u64 = 1;
    let known = OUTPUT_LEN.load(Ordering::Relaxed);
    if known != NOT_KNOWN && is_alone() {
        return known;
    }
    pass_on();
    let len = Stat::of(OUTPUT).map_or(0, |stat| stat.size as u64);
    if sys!(nr::LSEEK, OUTPUT, 0, SEEK_CUR) == len as i64 {
        OUTPUT_LEN.store(len, Ordering::Relaxed);
    }
    len
}

/// So many bytes were written to a descriptor.
pub fn written(fd: i32, len: u64) {
    let known = OUTPUT_LEN.load(Ordering::Relaxed);
    if fd == OUTPUT && known != NOT_KNOWN {
        OUTPUT_LEN.store(known + len, Ordering::Relaxed);
    }
}
