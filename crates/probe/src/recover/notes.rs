//! The read set and the dirtied lines of a run.
//!
//! Every pool mapping has a shadow: for each line a byte that says what was noted already, and, stored separately, a word with the bytes
//! that this process has written there. Lines that are only read do not need the word, so reading 256 KiB uses one page
//! of shadow. The shadow is private memory, so every fork starts with an empty one. Two mappings of one line have two
//! shadows, and other processes have their own: a line may then be noted as read although its bytes were written before.
//! That costs a run that could have been saved, but never gives a wrong verdict.

use core::sync::atomic::Ordering;

use wire::record::{Header, kind};
use wire::recover::{MAX_NOTES, flag, note};

use super::on;
use crate::layout;
use crate::load::space;
use crate::pm::{self, Shadow};
use crate::ring::control;
use crate::sys::{nr, raw};

pub const READ_NOTED: u8 = 1;
pub const DIRTY_NOTED: u8 = 2;

const LINE: u64 = 64;

/// One bit per byte of a line.
const WORD: u64 = size_of::<u64>() as u64;

/// Makes the shadow of a mapping.
pub fn shadow(start: u64, len: u64) -> Shadow {
    if !on() {
        return Shadow::default();
    }
    let (first, lines) = (start / LINE, len / LINE);
    let words = space::map_engine(lines * (WORD + 1));
    Shadow { written: words.wrapping_sub(first * WORD), noted: (words + lines * WORD).wrapping_sub(first) }
}

/// Nothing was noted yet: what comes is told again.
pub fn forget() {
    for range in pm::pieces(0, 1 << 47) {
        let (first, lines) = (range.start / LINE, range.len / LINE);
        clear((first * WORD).wrapping_add(range.shadow.written), lines * WORD);
        clear(first.wrapping_add(range.shadow.noted), lines);
    }
}

/// Makes memory of the engine zero; whole pages are given back.
fn clear(start: u64, len: u64) {
    const MADV_DONTNEED: u64 = 4;
    const PAGE: u64 = 4096;
    let (from, to) = (start.next_multiple_of(PAGE), (start + len) / PAGE * PAGE);
    let zero = |start: u64, end: u64| {
        // SAFETY: part of a shadow, made by `shadow`.
        unsafe { core::ptr::write_bytes(start as *mut u8, 0, (end - start) as usize) };
    };
    if from >= to {
        return zero(start, start + len);
    }
    // SAFETY: whole pages of the engine's own table, which become zeros.
    unsafe { raw!(nr::MADVISE, from, to - from, MADV_DONTNEED) };
    zero(start, from);
    zero(to, start + len);
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
            let here = at / LINE;
            // SAFETY: made by `shadow` for this range.
            let noted = unsafe { &mut *(here.wrapping_add(range.shadow.noted) as *mut u8) };
            // SAFETY: as above.
            let written = unsafe { &mut *((here * WORD).wrapping_add(range.shadow.written) as *mut u64) };
            // Without the note of a write no byte is written, and the word not looked at.
            let own = *noted & DIRTY_NOTED != 0 && bytes & !*written == 0;
            if kind != kind::STORE && *noted & READ_NOTED == 0 && !own {
                *noted |= READ_NOTED;
                tell(note::READ, range.pool, line);
            }
            if kind != kind::LOAD {
                *written |= bytes;
                if *noted & DIRTY_NOTED == 0 {
                    *noted |= DIRTY_NOTED;
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
