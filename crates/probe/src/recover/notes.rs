//! The read set and the dirtied lines of a run.
//!
//! Every pool mapping has a shadow: per line the bytes that this process has written there, and what was noted already. It is
//! private memory, so every fork starts with an empty one. Two mappings of one line have two shadows, and other processes
//! have their own: a line may then be noted as read though its bytes were written before. That costs a run that
//! could have been saved, never a wrong verdict.

use core::sync::atomic::Ordering;

use wire::record::{Header, kind};
use wire::recover::{MAX_NOTES, flag, note};

use super::on;
use crate::layout;
use crate::load::space;
use crate::pm;
use crate::ring::control;

pub const READ_NOTED: u8 = 1;
pub const DIRTY_NOTED: u8 = 2;

const LINE: u64 = 64;

#[repr(C)]
struct Shadow {
    /// One bit per byte.
    written: u64,
    noted: u64,
}

const SHADOW: u64 = size_of::<Shadow>() as u64;

/// Makes the shadow of a mapping; see `pm::Range::shadow`.
pub fn shadow(start: u64, len: u64) -> u64 {
    if !on() {
        return 0;
    }
    space::map_engine(len / LINE * SHADOW).wrapping_sub(start / LINE * SHADOW)
}

pub fn raise(bits: u32) {
    if !on() {
        return;
    }
    control().recovery.flags.fetch_or(bits, Ordering::Relaxed);
}

/// Something was read that the notes do not tell of.
pub fn incomplete() {
    if on() {
        raise(flag::INCOMPLETE);
    }
}

/// The kernel refused the program memory.
pub fn out_of_memory() {
    raise(flag::MEMORY);
}

fn tell(kind: u64, pool: u32, line: u64) {
    let at = control().recovery.note_count.fetch_add(1, Ordering::Relaxed) as usize;
    if at >= MAX_NOTES {
        return raise(flag::FULL);
    }
    // SAFETY: the notes are mapped in recovery runs, and this place is ours.
    unsafe { (layout::NOTES as *mut u64).add(at).write_volatile(note::pack(kind, pool, line)) };
}

/// An access of the program (or of the kernel for it) to `address..address+len`; what lies outside of PM does not matter.
pub fn access(kind: u8, address: u64, len: u64) {
    for range in pm::pieces(address, len) {
        let mut at = range.start;
        while at < range.end() {
            let end = ((at | (LINE - 1)) + 1).min(range.end());
            let bytes = (u64::MAX >> (64 - (end - at))) << (at % LINE);
            let line = (range.offset + (at - range.start)) / LINE;
            // SAFETY: made by `shadow` for this range.
            let shadow = unsafe { &mut *((at / LINE * SHADOW).wrapping_add(range.shadow) as *mut Shadow) };
            if kind != kind::STORE && bytes & !shadow.written != 0 && shadow.noted & READ_NOTED as u64 == 0 {
                shadow.noted |= READ_NOTED as u64;
                tell(note::READ, range.pool, line);
            }
            if kind != kind::LOAD {
                shadow.written |= bytes;
                if shadow.noted & DIRTY_NOTED as u64 == 0 {
                    shadow.noted |= DIRTY_NOTED as u64;
                    tell(note::DIRTY, range.pool, line);
                }
            }
            at = end;
        }
    }
}

/// `offset..offset+len` of a pool's file was read or written by a system call.
pub fn file_access(kind: u64, pool: u32, offset: u64, len: u64) {
    if len == 0 {
        return;
    }
    for line in offset / LINE..=(offset + len - 1) / LINE {
        tell(kind, pool, line);
    }
}

/// A record would be written here.
pub fn instead(header: &Header, parts: &[&[u8]], size: usize) {
    let pool = || parts.first().and_then(|p| (*p).try_into().ok()).map_or(0, u32::from_le_bytes);
    match header.kind {
        kind::STORE => access(kind::STORE, header.address, size as u64),
        // With the bytes that the kernel really wrote.
        kind::KERNEL_WRITE => access(kind::STORE, header.address, size as u64),
        kind::RMW => access(kind::RMW, header.address, size as u64 / 2),
        kind::LOAD => {
            let len = parts.first().and_then(|p| (*p).try_into().ok()).map_or(64, u64::from_le_bytes);
            access(kind::LOAD, header.address, len);
        }
        kind::FILE_WRITE => file_access(note::DIRTY, pool(), header.address, size as u64 - 8),
        kind::RESIZE | kind::FILE_ZERO => raise(flag::FILES_CHANGED),
        kind::THREAD_START => raise(flag::THREADS),
        _ => {}
    }
}
