//! Numbers of threads and processes in the recording. The parent assigns them, so that they are in the program's order.

use core::sync::atomic::Ordering;

use crate::ring::control;
use crate::thread::Thread;

/// A number for a new thread.
pub fn next_thread(thread: &mut Thread) -> u32 {
    let number = control().next_thread.fetch_add(1, Ordering::Relaxed);
    if number > u16::MAX as u32 {
        crate::refuse!(thread, "the recording has more than {} threads, which the trace cannot number", u16::MAX);
    }
    number
}

/// A number for a new process.
pub fn next_process() -> u32 {
    control().next_process.fetch_add(1, Ordering::Relaxed)
}
