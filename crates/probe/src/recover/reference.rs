//! A reference run: the process runs the operations without any crash and stops at every operation boundary. There the
//! host asks for a fork, to see the answers if the run continued otherwise: without the next operation, or with the
//! queries of the readback.
//!
//! A fork must not change the pools of the process that continues, so it maps them privately. That process waits
//! meanwhile, so nothing changes the files under the fork.

use core::sync::atomic::{AtomicBool, Ordering};

use wire::recover::{reference, state};

use super::{paths, serve};
use crate::layout;
use crate::pm;
use crate::ring::control;
use crate::sys::{MAP_FIXED, PROT_READ, PROT_WRITE, nr, raw, sys};
use crate::thread::Thread;

/// This process is a fork with private pools.
static PRIVATE: AtomicBool = AtomicBool::new(false);

pub fn on() -> bool {
    control().recovery.reference.load(Ordering::Relaxed) != reference::NONE
}

/// May not be done by a fork, since the process that goes on would see it.
pub fn must_not_touch(thread: &mut Thread) {
    if PRIVATE.load(Ordering::Relaxed) {
        crate::refuse!(thread, "an operation opens or writes a pool's file, which a reference run cannot keep apart");
    }
}

/// A new program would know nothing of private pools.
pub fn must_not_start(thread: &mut Thread) {
    if on() {
        crate::refuse!(thread, "the program starts other programs, which a reference run cannot keep apart");
    }
}

/// Between two operations. Returns in the process that shall read the next one.
pub fn boundary(thread: &mut Thread) {
    if !PRIVATE.load(Ordering::Relaxed) {
        serve::serve(thread, state::BOUNDARY);
    }
}

/// There are no more operations. A fork has told what it was forked for, unless its end is wanted, too: that can cost more than the
/// answers, where a program frees what it inherited (each page of it is copied).
pub fn told() {
    let answers = control().recovery.reference.load(Ordering::Relaxed) == reference::ANSWERS;
    if PRIVATE.load(Ordering::Relaxed) && answers {
        sys!(nr::EXIT_GROUP, 0);
    }
}

/// In a fork: the pools become its own.
pub fn part(thread: &mut Thread) {
    // Without NORESERVE the kernel refuses what would not fit into memory if all of it were changed.
    const MAP_PRIVATE_NORESERVE: u64 = 0x4002;
    const O_RDWR_CLOEXEC: u64 = 0o2000002;
    PRIVATE.store(true, Ordering::Relaxed);
    let ranges = pm::pieces(0, 1 << 47);
    for (number, range) in ranges.iter().enumerate() {
        let overlaps = |other: &pm::Range| {
            other.pool == range.pool
                && other.offset < range.offset + range.len
                && range.offset < other.offset + other.len
        };
        if ranges[..number].iter().any(overlaps) {
            crate::refuse!(thread, "a pool is mapped twice, which a reference run cannot keep apart");
        }
        let Some(path) = paths::private(range.pool) else { continue };
        let fd = sys!(nr::OPEN, path.as_ptr(), O_RDWR_CLOEXEC, 0);
        let prot = (range.prot | PROT_READ) & (PROT_READ | PROT_WRITE);
        let alias = layout::alias(range.start);
        // SAFETY: the alias of a range in the table, which is replaced as a whole; the engine keeps no references into pools.
        let got =
            unsafe { raw!(nr::MMAP, alias, range.len, prot, MAP_PRIVATE_NORESERVE | MAP_FIXED, fd, range.offset) };
        if fd < 0 || got != alias as i64 {
            crate::refuse!(thread, "a pool cannot be mapped privately for a reference run (error {})", -got);
        }
        sys!(nr::CLOSE, fd);
    }
}
