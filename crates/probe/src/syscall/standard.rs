//! Which files are behind the three standard descriptors. A run of operations reads and writes them thousands of times, and each time the engine must know whether
//! they are the operations or a pool: the kernel is asked once.
//!
//! What is behind an open descriptor changes only by `close`, `close_range`, `dup2` and `dup3`. While there are several threads or processes, the kernel is always asked.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::dispatch::Call;
use crate::pm::pools::{FileIdentity, Stat};
use crate::ring;
use crate::sys::{nr, sys};

const OUTPUT: i32 = 1;
const NOT_KNOWN: u64 = u64::MAX;

/// As far as the program, alone, has written only there since it was asked for.
static OUTPUT_LEN: AtomicU64 = AtomicU64::new(NOT_KNOWN);

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

/// The program makes this call, which may put another file behind a descriptor, or change the output's length.
pub fn before(call: Call) {
    match call.nr {
        nr::CLOSE | nr::CLOSE_RANGE | nr::DUP2 | nr::DUP3 => forget(),
        nr::WRITE | nr::WRITEV if call.fd(0) == OUTPUT => {}
        nr::READ
        | nr::READV
        | nr::FSTAT
        | nr::MMAP
        | nr::MUNMAP
        | nr::MPROTECT
        | nr::MADVISE
        | nr::MSYNC
        | nr::BRK
        | nr::FUTEX
        | nr::CLOCK_GETTIME
        | nr::RT_SIGPROCMASK
        | nr::RT_SIGACTION => {}
        _ => OUTPUT_LEN.store(NOT_KNOWN, Ordering::Relaxed),
    }
}

/// Nothing is known any more.
pub fn forget() {
    STANDARD.iter().for_each(|known| known.is_known.store(false, Ordering::Relaxed));
    OUTPUT_LEN.store(NOT_KNOWN, Ordering::Relaxed);
}

/// The length of the file behind standard output. It is counted as long as the program only writes at its end.
pub fn output_len() -> u64 {
    const SEEK_CUR: u64 = 1;
    let known = OUTPUT_LEN.load(Ordering::Relaxed);
    if known != NOT_KNOWN && is_alone() {
        return known;
    }
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
