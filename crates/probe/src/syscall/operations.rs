//! Operations on standard input: one line per `read`, so that the recorder knows where each begins and ends.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use alloc::vec::Vec;

use wire::control::option;
use wire::record::{Header, kind};

use super::dispatch::Call;
use super::event;
use crate::load::user;
use crate::ring;
use crate::signal;
use crate::sys::{self, nr};
use crate::thread::Thread;

const BEGIN: u8 = 0;
const END: u8 = 1;
/// Longest line served whole.
const LINE: u64 = 64 << 10;

/// Operations begun so far.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// The last one has not ended yet.
static OPEN: AtomicBool = AtomicBool::new(false);

pub fn wanted() -> bool {
    ring::control().options & option::OPERATIONS_STDIN != 0
}

/// A read of standard input: the operation before is over; the next line, if there is one, begins another.
pub fn read(thread: &mut Thread, call: Call) -> i64 {
    finish(thread);
    let begun = BEGUN.load(Ordering::Relaxed);
    let mut line: Vec<u8> = Vec::new();
    let mut result = 0;
    while (line.len() as u64) < call.args[2].min(LINE) && line.last() != Some(&b'\n') {
        let mut byte = 0u8;
        result = signal::blocking_syscall(thread, nr::READ, [0, &raw mut byte as u64, 1, 0, 0, 0]);
        if result != 1 {
            break;
        }
        line.push(byte);
    }
    if line.is_empty() {
        return result;
    }
    if !user::copy_out(call.args[1], &line) {
        return -sys::EFAULT;
    }
    BEGUN.store(begun + 1, Ordering::Relaxed);
    OPEN.store(true, Ordering::Relaxed);
    mark(thread, BEGIN, begun);
    event::kernel_write(thread, call.args[1], line.len() as u64);
    line.len() as i64
}

/// The operation under way, if there is one, is over.
pub fn finish(thread: &mut Thread) {
    if OPEN.swap(false, Ordering::Relaxed) {
        mark(thread, END, BEGUN.load(Ordering::Relaxed) - 1);
    }
}

fn mark(thread: &mut Thread, aux: u8, index: u64) {
    let header = Header { aux, address: index, ..event::header(thread, kind::OPERATION) };
    ring::order(thread).put(header, &[]);
}
