//! Coverage mode: counts the outcomes of branches and the transitions between PM operations in shared memory (`wire::cover`).
//!
//! Instructions are counted, never blocks: where a block begins depends on what ran before, on faults and on hints
//! from other processes, and the same run must give the same maps. A conditional branch is counted on both sides ([`emit`]), an
//! indirect one at its target, and PM operations in the trampoline that they call in any case ([`trampoline`]).

pub mod emit;
pub mod trampoline;

use wire::control::option;
use wire::cover;
use wire::record::{Header, kind};

use crate::layout;
use crate::load::modules;
use crate::ring::control;
use crate::thread::Thread;

/// Where the PM map lies.
pub const PM_MAP: u64 = layout::COVER + cover::EDGES as u64;

/// Is coverage wanted?
pub fn on() -> bool {
    control().options & option::COVER != 0
}

/// The place of an instruction, as `wire::cover` names it.
fn location(pc: u64) -> u64 {
    match modules::find(pc) {
        Some(module) => cover::location(module.name, pc.wrapping_sub(module.base)),
        None => cover::location(0, pc),
    }
}

/// The id of the instruction at `pc` as a PM operation.
pub fn operation(pc: u64) -> u64 {
    u64::from(cover::operation(location(pc)))
}

fn count(address: u64) {
    // SAFETY: callers give a counter of the maps, which are mapped in this mode. Threads may lose each other's counts.
    unsafe {
        let counter = address as *mut u8;
        counter.write_volatile(cover::counted(counter.read_volatile()));
    }
}

/// An indirect branch leads to `pc`, and found no landing.
pub fn arrived(pc: u64) {
    if on() {
        count(layout::COVER + cover::arrival(location(pc)) as u64);
    }
}

/// A PM operation that is told from Rust.
pub fn operated(thread: &mut Thread, operation: u32) {
    if !on() {
        return;
    }
    let (index, before) = cover::transition(thread.cover_before as u32, operation);
    thread.cover_before = u64::from(before);
    count(PM_MAP + index as u64);
}

/// A record of a system call would be written here.
pub fn system_call(thread: &mut Thread, header: &Header) {
    let is_operation = matches!(
        header.kind,
        kind::KERNEL_WRITE | kind::FILE_WRITE | kind::FILE_ZERO | kind::RESIZE | kind::MSYNC | kind::FSYNC
    );
    if is_operation && on() {
        // The pc behind the `syscall` instruction.
        let operation = operation(thread.pc.wrapping_sub(2));
        operated(thread, operation as u32);
    }
}
